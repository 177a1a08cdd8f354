"""Labels for which the gate of a self-managed group waits: those that are declared, or that an old node shows."""

import base64
from dataclasses import replace

import pytest

from leeward.errors import TerminalError
from leeward.model.group import Group
from leeward.model.launch import LaunchSettings, LaunchSource
from leeward.upgrade.members import UpgradeTarget
from leeward.upgrade.preflight.findings import Code
from leeward.upgrade.preflight.gather import expected_labels, labelled
from leeward.upgrade.preflight.group_checks import check_group
from leeward.upgrade.preflight.model import ExpectedLabels, PreflightInputs
from leeward.upgrade.record import UpgradeRecord, UpgradeRequest
from leeward.upgrade.surge.sizes import Strategy
from tests.unit.upgrade.builders import NEW, NOON, OLD, a_node, an_instance, an_upgrade, template

CALL = "/etc/eks/bootstrap.sh blue --kubelet-extra-args '--node-labels={}'\n"
SCRIPT = "#!/bin/bash\n" + CALL.format("pool=batch")
BRANCHES = f"#!/bin/bash\nif true; then\n{CALL.format('pool=batch')}else\n{CALL.format('pool=web')}fi\n"
NODE_CONFIG = """apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  kubelet:
    flags:
    - --node-labels=pool=batch
"""
BOTTLEROCKET = '[settings.kubernetes.node-labels]\npool = "batch"\n'
TAG = "k8s.io/cluster-autoscaler/node-template/label/rack"
TARGET, BEFORE = UpgradeTarget(template=template(NEW)), UpgradeTarget(template=template(OLD))


class Versions:
    """User data by version of the launch template; that of a version without is not readable."""

    def __init__(self, versions):
        self.versions = versions

    def settings(self, group):
        version = group.launch.template.version
        if version not in self.versions:
            raise TerminalError("ec2:DescribeLaunchTemplateVersions: denied")
        return LaunchSettings(user_data=base64.b64encode(self.versions[version].encode()).decode())


def expected(new, old=None, *nodes, tags=None, target=TARGET):
    """`nodes`: labels of those that were launched from the old version."""
    members = tuple(an_instance(f"n{number}") for number, _ in enumerate(nodes))
    group = Group(
        name="web",
        launch=LaunchSource(template=template(OLD)),
        minimum=0,
        maximum=9,
        desired=len(nodes),
        instances=members,
        tags=tags or {},
    )
    versions = Versions({NEW: new, **({} if old is None else {OLD: old})})
    return expected_labels(target, group, [a_node(f"n{n}", labels=one) for n, one in enumerate(nodes)], versions)


@pytest.mark.parametrize("user_data", [NODE_CONFIG, BOTTLEROCKET])
def test_a_declared_label_is_required_though_no_old_node_carries_it(user_data):
    assert expected(user_data, SCRIPT, {}) == ExpectedLabels(required={"pool": "batch"})


def test_a_label_of_a_script_is_required_where_all_old_nodes_of_the_same_user_data_carry_it():
    assert expected(SCRIPT, SCRIPT, {"pool": "batch"}, {"pool": "batch"}).required == {"pool": "batch"}


@pytest.mark.parametrize(
    ("old", "nodes"),
    [
        (SCRIPT, [{}]),
        (SCRIPT, [{"pool": "batch"}, {}]),
        (SCRIPT, [{"pool": "other"}]),
        (SCRIPT, []),
        (SCRIPT + "# as before\n", [{"pool": "batch"}]),
        (None, [{"pool": "batch"}]),
    ],
    ids=["none", "some", "another value", "no nodes", "other user data", "unreadable"],
)
def test_a_label_that_only_a_script_names_is_not_waited_for(old, nodes):
    assert expected(SCRIPT, old, *nodes) == ExpectedLabels(unproven={"pool": "batch"})


def test_labels_of_branches_are_not_waited_for_whatever_old_nodes_carry():
    found = expected(BRANCHES, BRANCHES, {"pool": "batch", "rack": "r1"}, tags={TAG: "r1"})
    assert found == ExpectedLabels(unproven={"rack": "r1"}, unclear=True)


def test_a_label_of_a_tag_is_required_where_old_nodes_carry_its_value():
    assert expected("", "", {"rack": "r1"}, tags={TAG: "r1"}).required == {"rack": "r1"}
    assert expected("", "", {"rack": "r2"}, tags={TAG: "r1"}) == ExpectedLabels(unproven={"rack": "r1"})
    assert expected("", "", tags={TAG: "r1"}) == ExpectedLabels(unproven={"rack": "r1"})
    own = replace(TARGET, overrides={"m5.large": template("7")})
    assert expected("", "", {"rack": "r1"}, tags={TAG: "r1"}, target=own).required == {}


def test_a_version_that_is_yet_to_be_made_is_like_the_template_of_the_group():
    assert expected("", SCRIPT, {"pool": "batch"}, target=UpgradeTarget()).required == {"pool": "batch"}


def test_an_override_lets_every_label_pass_and_a_rollback_waits_for_none():
    group = Group(name="web", launch=LaunchSource(template=template(OLD)), minimum=0, maximum=9, desired=0, tags={})
    versions = Versions({NEW: NODE_CONFIG, OLD: NODE_CONFIG})
    record = UpgradeRecord(
        group="web", target=TARGET, strategy=Strategy.DEFAULT, desired=0, maximum=9, began=NOON, previous=BEFORE
    )
    made = labelled(record, group, (), versions)
    assert (made.target.labels, made.previous.labels) == ({"pool": "batch"}, {})
    passed = replace(made, request=UpgradeRequest(overrides=("LabelsMissing",)))
    assert labelled(passed, group, (), versions).target.labels == {}


def test_preflight_names_the_labels_that_are_not_waited_for():
    labels = ExpectedLabels(unproven={"pool": "batch"})
    found = [
        finding.message
        for inputs in (
            PreflightInputs(),
            PreflightInputs(labels=labels),
            PreflightInputs(labels=replace(labels, unclear=True)),
        )
        for finding in check_group(an_upgrade(a_node("n1"), inputs=inputs))
        if finding.code is Code.LABELS_MISSING
    ]
    assert found == [
        "no old node with the same user data shows that new ones get pool=batch",
        "its user data sets labels that cannot be known, pool=batch among them",
    ]
