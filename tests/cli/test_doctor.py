"""`leeward doctor`: how it is asked for, what it prints, and what its exit code says."""

import json
from pathlib import Path

import jsonschema
import pytest

from leeward.blockers.blocker import BlockerKind
from leeward.doctor import expected
from leeward.doctor.finding import Check, State
from leeward.errors import AccessDeniedError, InvalidInputError
from leeward.model.facts import FactKind, Sheet
from leeward.upgrade.preflight.findings import Code
from tests.cli.command import SMALL
from tests.fakes.builders import CLUSTER, GROUP, PUT_BY_SYNC, a_group, a_node, an_instance, our_hook
from tests.fakes.clock import START
from tests.fakes.deployment import a_queue
from tests.fakes.system import FakeSystem

SCHEMA = json.loads(Path("docs/schema/doctor.json").read_text())
NOW = "2026-03-02T10:05:00Z"


@pytest.fixture
def system():
    found = FakeSystem(
        instances=[an_instance()],
        groups=[a_group(GROUP, "i-0abc")],
        hooks=[our_hook(heartbeat_timeout=PUT_BY_SYNC)],
        nodes=[a_node()],
    )
    for kind in FactKind:
        found.catalog.keep(CLUSTER, kind, Sheet(synced=START, content={}))
    return found


@pytest.fixture
def doctor(leeward, deployment):
    def run(*arguments, code=0):
        result = leeward("doctor", "--now", NOW, "-o", "json", *arguments)
        assert (result.code, result.err) == (code, "")
        jsonschema.validate(result.json, SCHEMA)
        return result.json["findings"]

    return run


def in_state(findings, state):
    return [found for found in findings if found["state"] == state]


def test_a_deployment_in_order(doctor):
    findings = doctor()
    assert len(findings) > 40
    assert in_state(findings, "ok") == findings
    assert doctor("--cluster", CLUSTER) == findings


def test_what_has_failed_makes_the_exit_code_1(doctor, deployment, system):
    deployment.enabled["leeward-spot-interruption"] = False
    system.groups.hooks_of.clear()
    failed = in_state(doctor(code=1), "failed")
    assert [(found["check"], found["object"]) for found in failed] == [
        ("rule", "rule leeward-spot-interruption"),
        ("hook", f"group {GROUP}"),
    ]
    assert failed[0]["fix"] == "aws events enable-rule --name leeward-spot-interruption"


def test_warnings_and_unknowns_do_not(doctor, deployment):
    deployment.queues[expected.UNDELIVERED] = a_queue(expected.UNDELIVERED, messages=2)
    deployment.fail("alarms", AccessDeniedError("cloudwatch:DescribeAlarms on leeward-: AccessDenied: no"))
    findings = doctor()
    assert [found["check"] for found in in_state(findings, "warning")] == ["dead-letters"]
    (unknown,) = in_state(findings, "unknown")
    assert unknown["fix"] == "allow yourself cloudwatch:DescribeAlarms"


@pytest.mark.parametrize(
    "error",
    [
        AccessDeniedError("sts:GetCallerIdentity on the default credentials: Unable to locate credentials"),
        InvalidInputError(
            "no AWS Region is set: found none in --region, AWS_REGION, AWS_DEFAULT_REGION or the profile"
        ),
    ],
)
def test_without_credentials_or_region_that_is_all_it_says(doctor, deployment, error):
    deployment.fail("identity", error)
    (found,) = doctor(code=1)
    assert (found["check"], found["state"]) == ("credentials", "failed")
    assert str(error) in found["found"]


def test_where_nothing_is_deployed_it_says_so_once(doctor, deployment):
    deployment.functions.clear()
    who, quota, found = doctor(code=1)
    assert [one["check"] for one in (who, quota, found)] == ["credentials", "concurrency", "deployment"]


def test_the_table_is_short_where_all_is_well(leeward, deployment):
    out = leeward("doctor", "--now", NOW).out
    assert len(out.splitlines()) < 55
    assert "9: leeward-interruption, leeward-terminate, leeward-drain …" in out
    assert out.rstrip().endswith(" ok")
    assert "fix" not in out


def test_the_table_names_each_trouble_with_its_way_out(leeward, deployment):
    deployment.queues[expected.DEAD_LETTERS] = a_queue(expected.DEAD_LETTERS, messages=4)
    result = leeward("doctor", "--now", NOW)
    assert result.code == 1
    assert "queue leeward-interruption-dead-letters: 4 messages could not be read or handled" in result.out
    assert "aws sqs receive-message" in result.out
    assert result.out.rstrip().splitlines()[-1].startswith("1 failed, ")


def test_a_snapshot_is_bad_input(leeward):
    assert "found --snapshot, expected --cluster NAME or no cluster" in leeward.refuses("doctor", "--snapshot", SMALL)


def test_the_schema_lists_every_check_and_every_state():
    properties = SCHEMA["properties"]["findings"]["items"]["properties"]
    assert properties["check"]["enum"] == [check.value for check in Check]
    assert set(properties["state"]["enum"]) == {state.value for state in State}


@pytest.mark.parametrize(
    ("heading", "codes"),
    [("Blockers of a node", BlockerKind), ("Findings of pre-flight", Code), ("Checks of doctor", Check)],
)
def test_every_code_that_is_printed_is_in_the_reference_of_its_command(heading, codes):
    section = Path("docs/reference/findings.md").read_text().partition(f"## {heading}")[2].partition("\n## ")[0]
    rows = "".join(line for line in section.splitlines() if line.startswith("| "))
    assert [code.value for code in codes if f"`{code.value}`" not in rows] == []
