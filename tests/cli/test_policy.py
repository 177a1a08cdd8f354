"""`leeward policy validate|diff`: every mistake at once, and what would change."""

import json
from pathlib import Path

import jsonschema
import pytest

from leeward.adapters import wiring
from tests.fakes.builders import CLUSTER, a_policy, pausing, policies
from tests.fakes.system import FakeSystem

SCHEMA = json.loads(Path("docs/schema/policy.json").read_text())
POLICY = """apiVersion: leeward.dev/v1
kind: NodePolicy
metadata: {name: web-all}
spec:
  selector: {groups: ["web-*"]}
  disruption: {}
  repair: {}
"""
SETTINGS = "apiVersion: leeward.dev/v1\nkind: ClusterSettings\nmetadata: {name: blue}\nspec: {drift: false}\n"
REFERENCE = "{{resolve:ssm:/prod/password}}"


@pytest.fixture
def system(monkeypatch):
    found = FakeSystem(written=policies(a_policy("web-all")))
    monkeypatch.setattr(wiring, "command_line_ports", lambda *_: found.ports)
    return found


@pytest.fixture
def file(tmp_path):
    def write(text, name="web.yaml"):
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return write


@pytest.fixture
def policy(leeward):
    def run(*arguments, code=0):
        result = leeward("policy", *arguments, "-o", "json")
        assert (result.code, result.err) == (code, "")
        jsonschema.validate(result.json, SCHEMA)
        return result.json

    return run


def test_valid_files_need_no_cluster_and_are_named_in_their_order(policy, file):
    written = file(f"{POLICY}---\n{SETTINGS}")
    assert policy("validate", written)["documents"] == [
        {"kind": "ClusterSettings", "name": "blue"},
        {"kind": "NodePolicy", "name": "web-all"},
    ]


def test_every_mistake_of_all_files_is_one_line_at_once(leeward, file, tmp_path):
    broken = file("a: [", "broken.yaml")
    wrong = file(f"{POLICY}  finalizer: 1\n  drain: {{timeout: soon}}\n", "wrong.yaml")
    result = leeward("policy", "validate", broken, wrong, str(tmp_path / "absent.yaml"))
    assert (result.code, result.out) == (2, "")
    lines = result.err.splitlines()
    assert len(lines) == 4
    for part in ("absent.yaml: found no such file", "broken.yaml: line", "spec.drain.timeout", "spec.finalizer"):
        assert sum(part in line for line in lines) == 1, part


def test_a_paused_key_is_unknown(leeward, file):
    result = leeward("policy", "validate", file(SETTINGS.replace("drift: false", "paused: true")))
    assert (result.code, "spec.paused: found an unknown key" in result.err) == (2, True)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (SETTINGS.replace("drift: false", "webhook: {url: 'http://hooks.example.com/T1'}"), "spec.webhook.url"),
        (SETTINGS.replace("drift: false", f"webhook: {{url: 'https://x.example/{REFERENCE}'}}"), "spec.webhook.url"),
        (POLICY.replace("web-*", REFERENCE), "spec.selector.groups[0]"),
    ],
)
def test_a_text_that_the_deployment_refuses_or_resolves_is_refused_here(leeward, file, text, place):
    result = leeward("policy", "validate", file(text))
    assert (result.code, f"{place}: found " in result.err, len(result.err.splitlines())) == (2, True, 1)


def test_settings_of_another_cluster_are_refused_where_the_cluster_is_named(leeward, file):
    assert leeward("policy", "validate", file(SETTINGS)).code == 0
    assert leeward("policy", "validate", file(SETTINGS), "--cluster", "green").code == 2


def test_nothing_differs_where_the_files_say_the_same_in_other_words(policy, file, system):
    spelled = f"{POLICY}  drain: {{timeout: 900s, force: false}}\n"
    answer = policy("diff", file(spelled), "--cluster", CLUSTER)
    assert answer == {"differs": False, "diff": ""}


def test_a_difference_is_a_unified_diff_with_exit_code_1(policy, file, system):
    answer = policy("diff", file(f"{POLICY}  drain: {{timeout: 20m}}\n"), "--cluster", CLUSTER, code=1)
    lines = answer["diff"].splitlines()
    assert lines[:2] == ["--- in force", "+++ files"]
    assert [line for line in lines[2:] if line[0] in "+-"] == ["-    timeout: 15m", "+    timeout: 20m"]


def test_a_pause_is_no_difference(policy, file, system):
    system.clusters.policies_of[CLUSTER] = pausing(system.clusters.policies_of[CLUSTER])
    assert not policy("diff", file(POLICY), "--cluster", CLUSTER)["differs"]


def test_diff_needs_something_to_compare_with(leeward, file):
    result = leeward("policy", "diff", file(POLICY))
    assert (result.code, "policy diff: found neither --cluster nor --snapshot" in result.err) == (2, True)


def test_the_table_of_a_diff_is_the_diff(leeward, file, system):
    shown = leeward("policy", "diff", file(f"{POLICY}  finalizer: true\n"), "--cluster", CLUSTER)
    assert shown.code == 1
    assert {"--- in force", "+++ files", "+  finalizer: true"} <= set(shown.out.splitlines())


def test_each_valid_document_has_a_line(leeward, file):
    shown = leeward("policy", "validate", file(f"{POLICY}---\n{SETTINGS}"))
    assert shown.out.splitlines() == ["valid: ClusterSettings blue", "valid: NodePolicy web-all"]
