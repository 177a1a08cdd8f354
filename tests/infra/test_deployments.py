"""A deployment with a name of its own has nothing that the usual one has."""

import json
import re

import pytest

from infra.program import build_app
from leeward.errors import InvalidInputError
from tests.infra.conftest import ROOT, WITH_A_WEBHOOK
from tests.infra.template import Template

REFERRED = {("AWS::CloudWatch::Alarm", "MetricName")}
"""Names of what others make, and of what may be the same: a metric is in the deployment's own namespace."""


def synthesized(outdir, **settings):
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    leeward = {**WITH_A_WEBHOOK, **settings}
    return build_app(ROOT, {}, context={**context, "leeward": leeward}, outdir=str(outdir)).synth()


@pytest.fixture(scope="module")
def trial(tmp_path_factory):
    (artifact,) = synthesized(tmp_path_factory.mktemp("trial"), deployment="trial").stacks
    return artifact


def names_of(template):
    """(type, key, name) of each property whose key ends in Name: physical names, and names of what is referred to."""
    return {
        (resource["Type"], key, json.dumps(template.filled(value)))
        for resource in template.raw["Resources"].values()
        for key, value in resource.get("Properties", {}).items()
        if key.endswith("Name") and (resource["Type"], key) not in REFERRED
    }


def test_no_physical_name_is_the_usual_ones(trial, everything):
    ours, usual = names_of(Template(raw=trial.template, assembly=ROOT)), names_of(everything)
    assert trial.stack_name == "trial-Leeward"
    assert len(ours) > 40
    assert {"Name", "DashboardName", "QueueName"} <= {key for _, key, _ in ours}
    assert ours & usual == set()
    strangers = [name for _, _, name in ours if "trial-leeward" not in name]
    assert strangers == []


def test_its_functions_know_their_own_table_queue_machines_and_mark(trial):
    template = Template(raw=trial.template, assembly=ROOT)
    environments = [each["Environment"]["Variables"] for each in template.resources("AWS::Lambda::Function").values()]
    assert environments
    for environment in environments:
        assert environment["DEPLOYMENT_ID"] == "111122223333-us-east-1-trial"
        assert environment["STATE_MACHINE_ARN"].endswith(":trial-leeward-node-termination")
        assert environment["POLICY_PREFIX"] == "/trial-leeward"
        assert (environment["HOOK_MARK"], environment["EVENT_SOURCE"]) == ("leeward.dev/v1/trial", "trial-leeward")
        assert environment["METRICS_NAMESPACE"] == "Leeward/trial"


def test_its_alarms_and_its_dashboard_show_its_own_metrics_alone(trial):
    template = Template(raw=trial.template, assembly=ROOT)
    watched = {alarm["Namespace"] for alarm in template.resources("AWS::CloudWatch::Alarm").values()}
    assert {name for name in watched if not name.startswith("AWS/")} == {"Leeward/trial"}
    board = json.dumps(template.filled(template.one("AWS::CloudWatch::Dashboard")["DashboardBody"]))
    assert "Leeward/trial" in board
    assert not re.search(r'"Leeward[\\"]', board)


def test_no_role_of_it_speaks_of_a_thing_of_the_usual_one(trial):
    text = json.dumps(Template(raw=trial.template, assembly=ROOT).filled(trial.template["Resources"]))
    for usual in (
        ":table/leeward",
        ":leeward-interruption",
        ":stateMachine:leeward-",
        ":function:leeward-",
        "role/leeward-",
    ):
        assert usual not in text


@pytest.mark.parametrize("name", ["Trial", "a-name-that-is-too-long", "-x", "9a"])
def test_a_name_that_iam_or_the_taint_could_not_carry_is_refused(tmp_path, name):
    with pytest.raises(InvalidInputError, match=r"leeward\.deployment: found .*, expected at most 15 small letters"):
        synthesized(tmp_path, deployment=name)
