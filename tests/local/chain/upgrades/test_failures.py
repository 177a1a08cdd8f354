"""Upgrades that end with an error on the deployed stack: new nodes that do not come, pods that do not leave, and the
start after that."""

from datetime import UTC, datetime, timedelta

import pytest

from leeward.model.times import format_instant
from local import fleet
from local.demo import ledger, scenario
from tests.local.chain.conftest import LABEL_TAG, called

pytestmark = [pytest.mark.local, pytest.mark.long]

QUARTER = timedelta(minutes=15)  # how long new nodes are waited for
DRAIN_TIMEOUT = timedelta(seconds=20)  # of the policy of `tight-*`


def a_quarter_of_an_hour_later(story):
    """Set back the moments that the wait for new nodes counts from: EC2's launch times and those of the record."""
    earlier = QUARTER + timedelta(seconds=30)
    for instance in story.members - story.old:
        story.stack.control("PUT", f"instances/{instance}", {"launchedSecondsAgo": earlier.total_seconds()})
    moment = {":then": {"S": format_instant(datetime.now(UTC) - earlier)}}
    story.stack.client("dynamodb").update_item(
        TableName="leeward",
        Key={"pk": {"S": f"upgrade#{story.group}"}},
        UpdateExpression="SET phase_since = :then, sized = :then",
        ExpressionAttributeValues=moment,
    )


def failed(story):
    """Error and cause of an upgrade that gets no new nodes, a quarter of an hour later. A step that has read the record
    before writes the moments back: they are set until it ends.
    """

    def ended():
        a_quarter_of_an_hour_later(story)
        outcome = story.execution_now()
        return outcome if outcome["status"] != "RUNNING" else None

    outcome = story.team.until(ended, f"the end of {story.execution}")
    assert outcome["status"] == "FAILED", (outcome, story.recorded(), story.launched())
    return outcome["error"], outcome["cause"]


@pytest.fixture(scope="module", autouse=True)
def grown(stack, story):
    """Four nodes; the desired size is raised by one while they drain, as Cluster Autoscaler does for a Pending pod. A
    budget keeps the nodes for as long as the change has to be seen.
    """
    story = story(4, "grown")
    story.apply(story.workload("grown", 8, cpu="400m"), fleet.budget("grown", maxUnavailable=1))
    called(stack, "sync")
    story.to_another_image().until_requested(1)
    story.apply(fleet.budget("grown", maxUnavailable=0))
    raised = story.described["DesiredCapacity"] + 1
    stack.client("autoscaling").set_desired_capacity(
        AutoScalingGroupName=story.group, DesiredCapacity=raised, HonorCooldown=False
    )
    return story


@pytest.fixture
def broken(story):
    """Start an upgrade of two nodes, after a change of the group: `broken(no_longer_labelled)`."""

    def build(before=lambda team: None, within=None):
        made = story(2, "broken", within=within)
        before(made.team)
        return made.to_another_image()

    return build


def test_new_nodes_that_do_not_come_fail_it_with_their_cause_and_nothing_is_drained(stack, broken):
    """Four causes at a time: never joined, joined without a label, not Ready, and no capacity in the zone."""
    own = fleet.build_network(stack)

    def without_capacity(team):
        zone = fleet.instances_of(stack, team.group)[0]["AvailabilityZone"]
        subnet = next(one for one in own.subnets if zone_of(stack, one) == zone)
        stack.control("POST", "capacity", {"subnet": subnet, "code": "InsufficientInstanceCapacity"})
        lacking.append(zone)

    lacking = []
    stories = {
        "joined": broken(lambda team: team.keep_from_joining()),
        "label": broken(no_longer_labelled),
        "ready": broken(lambda team: team.keep_from_joining()),
        "capacity": broken(without_capacity, within=own),
    }
    unready = stories["ready"]
    sick = one_not_ready(unready)
    causes = {}
    for name, story in stories.items():
        error, causes[name] = failed(story)
        assert error == "NodeCreationFailure", causes
    stack.control("DELETE", "capacity")
    assert "no node has joined the cluster: read the instance's console output: user data" in causes["joined"]
    label = stories["label"]
    assert (
        f"joined without the labels group={label.group}: custom user data overwrites --node-labels" in causes["label"]
    )
    assert f"{sick}: not Ready for" in causes["ready"]
    assert "Ready=False (" in causes["ready"]
    no_node = f"{lacking[0]}: no new node could be launched: InsufficientInstanceCapacity"
    assert no_node in causes["capacity"]
    assert all(story.untouched for story in stories.values())


def zone_of(stack, subnet):
    return stack.client("ec2").describe_subnets(SubnetIds=[subnet])["Subnets"][0]["AvailabilityZone"]


def no_longer_labelled(team):
    """As user data that passes on no labels: only the nodes that are there have the label of the group's tag."""
    tag = {"Key": LABEL_TAG, "Value": team.group, "PropagateAtLaunch": False}
    named = {"ResourceId": team.group, "ResourceType": "auto-scaling-group"}
    team.stack.client("autoscaling").create_or_update_tags(Tags=[{**tag, **named}])


def one_not_ready(story):
    """Let the new nodes join, the first of which is not Ready any more when the second comes: the gate stays closed.
    Returns its name.
    """
    new = story.team.until(lambda: sorted(story.members - story.old)[:2] if len(story.members) == 4 else None, "surge")
    for instance in new:
        story.let_join([instance])
        story.team.until(lambda name=instance: is_ready_node(story.stack, name), f"{instance} Ready")
        if instance == new[0]:
            name = story.team.node_name(instance)
            story.stack.cluster_control("PUT", f"nodes/{name}/ready", {"status": "False"})
    return name


def is_ready_node(stack, instance):
    node = ledger.nodes(stack).get(instance)
    return node is not None and scenario.is_ready(node)


def test_the_gate_stays_closed_until_a_new_node_has_its_label(stack, broken):
    """`status` names the label; once the nodes have it, the upgrade goes on by itself."""
    story = broken(no_longer_labelled)

    def lacks():
        missing = story.status()["gate"]["missing"]
        return missing if len(missing) == 2 and all("without the labels" in line for line in missing) else None

    missing = story.team.until(lacks, "two new nodes without the label")
    assert all(f"group={story.group}" in line for line in missing)
    assert story.untouched
    for instance in story.members - story.old:
        stack.kubectl("label", "node", story.team.node_name(instance), f"group={story.group}")
    story.succeeded()
    story.is_as_before(version="2")
    assert not story.old & story.members


def test_a_pod_that_stays_fails_it_and_with_force_it_is_deleted_and_new_nodes_stay(stack, story, leeward):
    """Three nodes, on one of which a budget allows no eviction ever."""
    story = story(3, "tight")
    team = story.team
    story.apply(story.workload("moves", 3), story.workload("stays", 1), fleet.budget("stays", maxUnavailable=0))
    called(stack, "sync")
    image = story.another_image()
    code, out, _ = leeward("upgrade", "start", team.group, "--ami", image, "--yes")
    assert (code, "PdbNeverAllows" in out, story.versions) == (1, True, {"1"})
    assert story.untouched

    outcome = story.start("--ami", image, "--override", "PdbNeverAllows").ended()
    assert (outcome["status"], outcome["error"]) == ("FAILED", "PodEvictionFailure"), outcome
    assert "PodDisruptionBudget default/stays allows no disruption" in outcome["cause"]
    (blocked,) = story.old & story.members
    first = story.members - story.old
    held = [fact for fact in story.facts() if fact.object.startswith("default/stays-")]
    assert any(fact.kind == "eviction-refused" for fact in held)
    assert not [fact for fact in held if fact.kind in {"pod-deletion-started", "pod-deleted"}]
    assert story.status()["phase"] == "failed"

    again = datetime.now(UTC)
    story.start("--force", "--override", "PdbNeverAllows").succeeded()
    story.is_as_before(version="2")
    assert first <= story.members
    begun = next(fact.at for fact in story.facts("node-tainted") if fact.instance == blocked and fact.at > again)
    (deleted,) = [fact.at for fact in story.facts("pod-deletion-started") if fact.object.startswith("default/stays-")]
    assert deleted - begun >= DRAIN_TIMEOUT - timedelta(seconds=1)
    assert not [fact for fact in story.all_facts() if fact.disrupts and fact.instance in first]


def test_what_another_writer_adds_to_the_group_stays(grown):
    """The upgrade sees the larger size for a minute, and from then on gives nothing back: old nodes terminate without
    decrement, and the surge nodes without an old node stay.
    """
    story = grown
    story.team.until(lambda: story.recorded().others_scaled is not None, "another writer seen")
    seen = datetime.now(UTC)
    story.apply(fleet.budget("grown", maxUnavailable=1))
    story.succeeded()
    later = {one for one, at in story.requested().items() if at > seen}
    ends = {one.instance: one.shrinks for one in story.activities("Terminating")}
    assert later
    assert not any(ends[one] for one in later)
    assert not story.old & story.members
    size = story.described["DesiredCapacity"]
    assert (story.versions, len(story.members)) == ({"2"}, size)
    assert (story.sizes, story.described["SuspendedProcesses"]) == ((0, size, 12), [])
    assert size >= 4 + 1
