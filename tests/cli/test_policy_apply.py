"""`leeward policy apply`: what it writes, when it asks, and what it refuses."""

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from leeward.adapters import wiring
from leeward.policy.document import AppliedPolicies, ClusterPolicies, ClusterSettings
from leeward.policy.parse import parse_documents
from tests.fakes.builders import CLUSTER
from tests.fakes.deployment import FakeDeployment
from tests.fakes.system import FakeSystem

SCHEMA = json.loads(Path("docs/schema/policy.json").read_text())
NOW = ("--now", "2026-03-02T10:00:00Z")
POLICY = """apiVersion: leeward.dev/v1
kind: NodePolicy
metadata: {name: web}
spec:
  selector: {groups: ["web-*"]}
"""
SETTINGS = f"apiVersion: leeward.dev/v1\nkind: ClusterSettings\nmetadata: {{name: {CLUSTER}}}\nspec: "


@pytest.fixture
def system(monkeypatch):
    """A deployment that names no policies for its cluster."""
    found = FakeSystem(written=ClusterPolicies(settings=ClusterSettings(name=CLUSTER)))
    monkeypatch.setattr(wiring, "command_line_deployment", lambda *_: FakeDeployment(CLUSTER))
    monkeypatch.setattr(wiring, "command_line_ports", lambda *_: found.ports)
    return found


@pytest.fixture
def apply(leeward, system, tmp_path):
    """Apply the text, then let the functions read what is stored."""

    def run(text=POLICY, *arguments, code=0):
        (tmp_path / "web.yaml").write_text(text)
        options = ("--cluster", CLUSTER, "--yes", *NOW, "-o", "json", *arguments)
        result = leeward("policy", "apply", str(tmp_path / "web.yaml"), *options)
        assert result.code == code, result.err
        if code:
            return result.err
        stored = system.policy_store.read(CLUSTER)
        documents = [(name, json.loads(document)) for name, document in stored.documents]
        parsed = parse_documents(documents, cluster=CLUSTER)
        system.clusters.policies_of[CLUSTER] = replace(parsed, applied=stored.version)
        jsonschema.validate(result.json, SCHEMA)
        return result.json

    return run


def test_the_files_are_written_as_one_record_with_caller_and_time(apply, system):
    answer = apply()
    assert (answer["applied"], answer["version"]) == (True, 1)
    assert "web-*" in answer["diff"]
    stored = system.policy_store.read(CLUSTER)
    assert [name for name, _ in stored.documents] == ["01-web"]
    assert (stored.by, stored.at.isoformat()) == (FakeDeployment(CLUSTER).identity().arn, "2026-03-02T10:00:00+00:00")


def test_the_same_files_again_write_nothing(apply, system):
    apply()
    assert apply() == {"applied": False, "version": 1, "diff": ""}
    assert system.policy_store.read(CLUSTER).version == 1


def test_a_changed_file_is_the_next_version(apply):
    apply()
    answer = apply(POLICY + "  disruption: {}\n")
    assert (answer["applied"], answer["version"]) == (True, 2)
    assert "+  disruption:" in answer["diff"]


def test_where_the_deployment_names_policies_nothing_is_applied(apply, system):
    document = {
        "apiVersion": "leeward.dev/v1",
        "kind": "NodePolicy",
        "metadata": {"name": "web"},
        "spec": {"selector": {"groups": ["*"]}},
    }
    system.clusters.policies_of[CLUSTER] = parse_documents([("x", document)], cluster=CLUSTER)
    assert "the deployment names its policies" in apply(code=1)
    assert system.policy_store.read(CLUSTER) == AppliedPolicies(cluster=CLUSTER)


def test_another_caller_who_is_faster_loses_nothing(apply, system):
    apply()
    store = system.policy_store
    read = store.read

    def overtaken(cluster):
        found = read(cluster)
        store.records[cluster] = replace(found, version=found.version + 1, by="another")
        return found

    store.read = overtaken
    assert "another caller has applied policies" in apply(POLICY + "  finalizer: true\n", code=1)
    assert read(CLUSTER).by == "another"


def test_a_webhook_is_a_part_of_the_deployment(apply):
    hook = f"{SETTINGS}{{webhook: {{url: 'https://x.example'}}}}\n"
    assert "a part of the deployment" in apply(f"{POLICY}---\n{hook}", code=2)


def test_no_policy_at_all_is_refused(apply):
    assert "expected at least one" in apply(f"{SETTINGS}{{drift: false}}\n", code=2)


def test_a_wrong_file_writes_nothing(apply, system):
    apply(POLICY + "  finalizer: 1\n", code=2)
    assert system.policy_store.read(CLUSTER).version == 0


def test_a_cluster_that_the_deployment_does_not_serve_is_named(leeward, system, tmp_path):
    (tmp_path / "web.yaml").write_text(POLICY)
    result = leeward("policy", "apply", str(tmp_path / "web.yaml"), "--cluster", "gren", "--yes")
    assert (result.code, f"expected one that the deployment serves: {CLUSTER}" in result.err) == (2, True)


def test_without_a_terminal_it_needs_yes(leeward, system, tmp_path):
    (tmp_path / "web.yaml").write_text(POLICY)
    result = leeward("policy", "apply", str(tmp_path / "web.yaml"), "--cluster", CLUSTER)
    assert (result.code, "--yes" in result.err) == (2, True)


@pytest.mark.parametrize("where", [(), ("--snapshot", "tests/cli/snapshots/small")])
def test_policies_are_applied_live(leeward, tmp_path, where):
    (tmp_path / "web.yaml").write_text(POLICY)
    result = leeward("policy", "apply", str(tmp_path / "web.yaml"), "--yes", *where)
    assert (result.code, "policies are applied live" in result.err) == (2, True)
