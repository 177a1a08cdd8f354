"""Story of voluntary disruption on a deployed stack: expired, drifted, empty and underutilized nodes in one cluster.

The tests are its stages, in their order: each begins where the one before has ended, so run the file as a whole. What
is asserted is what the local AWS and the local cluster recorded."""

import pytest

from leeward.disruption.command import MethodName
from leeward.disruption.record import DisruptionOutcome
from local.demo import ledger, scenario
from tests.local.chain.conftest import called, logged
from tests.local.chain.groups.test_node_group_upgrade import group_of
from tests.local.chain.scenarios import disruption_fleet
from tests.local.chain.scenarios.disruption_fleet import POLICIES, SWITCHED_OFF, ZONES, images
from tests.local.chain.scenarios.disruption_stage import (
    ALWAYS,
    OPT_OUT,
    PRICES,
    deployed,
)

pytestmark = [pytest.mark.local, pytest.mark.long]

METHOD_OF = {"aged": "expiration", "worn": "drift", "idle": "emptiness", "shop-wide": "consolidation"}


def without(one, **off):
    """The same policy with methods switched off."""
    rules = one["spec"].get("disruption", {})
    kept = {key: value for key, value in rules.items() if not key.startswith("ttl")}
    return {**one, "spec": {**one["spec"], "disruption": {**kept, **off}}}


def without_section(one):
    return {**one, "spec": {key: value for key, value in one["spec"].items() if key != "disruption"}}


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    with deployed(tmp_path_factory.mktemp("disruption-story")) as found:
        disruption_fleet.build(found)
        yield found


def instance_with(stage, app):
    """The instance on whose node the only pod of a Deployment runs."""
    (node,) = stage.pods(app).values()
    return next(one for one, seen in ledger.nodes(stage.stack).items() if seen["metadata"]["name"] == node)


def names(stage, group):
    return {stage.crews[group].node_name(one) for one in stage.crews[group].instances}


def warned(stage, instance):
    """Send a spot warning about an instance, wait until it is read, and let the minute reconciler run twice."""
    stage.stack.emit(scenario.spot_warning(stage.stack, instance))
    stage.crews["left"].until(lambda: logged(stage.stack, "interruption", instance), "the warning is read")
    stage.crews["left"].until(lambda: ledger.queue_depth(stage.stack) == 0, "the warning is done")
    for _ in range(2):
        called(stage.stack, "reconciler")


def test_with_every_method_off_for_the_cluster_nothing_is_planned_annotated_or_tainted(stage):
    """A second image is published meanwhile; a method that is on would act on each of the four groups."""
    disruption_fleet.publish_another_image(stage)
    stage.apply(POLICIES, **SWITCHED_OFF, interruption=False)
    assert stage.decide() == []
    plan = stage.leeward("plan").document
    assert (plan["method"], plan["commands"]) == (None, [])
    for group, method in METHOD_OF.items():
        said = {stage.verdicts(plan, one)[method] for one in stage.crews[group].instances}
        assert said & {f"{method} is switched off for the cluster"}, (group, said)
    notes = {key for group in METHOD_OF for one in stage.crews[group].instances for key in stage.annotations(one)}
    assert not notes & {"leeward.dev/expired", "leeward.dev/drifted-since", "leeward.dev/empty-since"}
    warned(stage, stage.crews["shop-wide"].instances[0])
    assert (ledger.executions(stage.stack), stage.tainted()) == ({}, [])


@pytest.mark.parametrize("how", ["switched off in each policy", "without a section"])
def test_policies_that_switch_no_method_on_disrupt_nothing(stage, how):
    off = {"consolidationPolicy": "Never", "drift": False}
    quiet = {"switched off in each policy": lambda one: without(one, **off), "without a section": without_section}
    stage.apply([quiet[how](one) for one in POLICIES])
    assert stage.decide() == []
    assert (stage.tainted(), stage.launches()) == ([], 0)


def test_a_pause_by_the_command_begins_nothing_until_it_is_resumed(stage):
    stage.apply(POLICIES, freeze=[ALWAYS])
    paused = stage.leeward("pause", "--why", "an audit")
    assert paused.code == 0, paused.err
    stage.forget()
    decided = called(stage.stack, "disruption-planner")
    assert (decided["paused"], decided["disruptions"]) == ([stage.stack.cluster], [])
    assert stage.leeward("resume", "--why", "the audit is over").code == 0


def test_in_a_freeze_nodes_are_annotated_and_none_is_disrupted(stage):
    stage.forget()
    for _ in range(2):  # of empty nodes the time has passed at the second
        assert stage.decide() == []
    assert {stage.annotations(one).get("leeward.dev/expired") for one in stage.crews["aged"].instances} == {"true"}
    drifted = [stage.annotations(one) for one in stage.crews["worn"].instances]
    assert {notes.get("leeward.dev/drift-reasons") for notes in drifted} == {"ami"}
    assert all("leeward.dev/drifted-since" in notes for notes in drifted)
    assert all("leeward.dev/empty-since" in stage.annotations(one) for one in stage.crews["idle"].instances)
    assert (stage.tainted(), stage.launches(), stage.facts("eviction-accepted")) == ([], 0, [])


def test_a_group_without_interruption_handling_disruption_and_repair_is_left_to_ec2(stage):
    """Its instance is impaired and gets a spot warning."""
    (instance,) = stage.crews["left"].instances
    stage.stack.control("PUT", f"status-checks/{instance}", {"impaired": ["system"], "secondsAgo": 3600})
    warned(stage, instance)
    assert ledger.executions(stage.stack) == {}
    assert stage.serves("left")
    assert stage.tainted() == []


def test_with_the_methods_on_expiration_is_the_first_and_replaces_the_node_before_it_drains_it(stage):
    stage.apply(POLICIES)
    (old,) = stage.crews["aged"].instances
    node = stage.crews["aged"].node_name(old)
    record = stage.run()
    assert (record.method, record.outcome) == (MethodName.EXPIRATION, DisruptionOutcome.DONE), record
    (new,) = stage.members("aged")
    assert stage.states([old]) <= {"shutting-down", "terminated"}
    assert stage.instance(new)["InstanceType"] == "m5.large"
    assert stage.tainted() == [node]
    (pod,) = stage.evicted_from(node)
    assert pod.startswith("default/aged-")
    ready = stage.first("node-ready", object=stage.crews["aged"].node_name(new))
    assert ready < stage.first("eviction-accepted", node=node)
    assert stage.serves("aged")
    stage.annotate(new, OPT_OUT, "true")  # it would expire again within the story


def test_a_replacement_that_does_not_join_within_fifteen_minutes_gives_the_nodes_back(stage):
    """EC2 is made to report that it was launched sixteen minutes ago."""
    crew, free = stage.crews["worn"], instance_with(stage, "free")
    crew.keep_from_joining()
    late = []

    def let_time_pass():
        for one in set(stage.members("worn")) - set(crew.instances) - set(late):
            stage.stack.control("PUT", f"instances/{one}", {"launchedSecondsAgo": 960})
            late.append(one)

    record = stage.run(let_time_pass)
    assert (record.method, record.outcome) == (MethodName.DRIFT, DisruptionOutcome.GIVEN_UP), record
    assert "has not joined after" in record.why
    crew.until(lambda: stage.serves("worn"), "the group at its size, its nodes in service")
    assert set(stage.members("worn")) == set(crew.instances)
    (new,) = late
    assert stage.states([new]) <= {"shutting-down", "terminated"}
    node = crew.node_name(free)
    assert (stage.tainted()[1:], stage.untainted()) == ([node], [node])
    assert stage.evicted_from(node) == []
    assert group_of(stage.stack, "worn")["SuspendedProcesses"] == []
    stage.stack.control("PUT", f"subnets/{stage.instance(new)['SubnetId']}", {"freeIps": 5})
    stage.seen["failed"] = new


def test_the_run_starts_over_in_the_subnet_of_the_zone_that_has_addresses(stage):
    """The subnet that the failed launch chose is nearly full by now."""
    crew, free = stage.crews["worn"], instance_with(stage, "free")
    tag = {"Key": "local.leeward.dev/never-join", "ResourceType": "auto-scaling-group", "ResourceId": "worn"}
    stage.stack.client("autoscaling").delete_tags(Tags=[tag])
    node = crew.node_name(free)
    record = stage.run()
    assert (record.method, record.outcome) == (MethodName.DRIFT, DisruptionOutcome.DONE), record
    (new,) = set(stage.members("worn")) - set(crew.instances)
    assert stage.instance(new)["Placement"]["AvailabilityZone"] == ZONES[0]
    assert stage.instance(new)["SubnetId"] != stage.instance(stage.seen["failed"])["SubnetId"]
    assert stage.instance(new)["ImageId"] == images(stage.stack)[1]
    assert stage.states([free]) <= {"shutting-down", "terminated"}
    assert len(stage.evicted_from(node)) == 1
    assert stage.serves("worn")


def test_empty_nodes_go_together_as_far_as_the_budget_of_each_zone_allows(stage):
    """The drifted nodes that are left cannot be drained: the next method acts. Of four empty nodes two share a zone."""
    before, launches = len(stage.tainted()), stage.launches()
    zones = {one: stage.instance(one)["Placement"]["AvailabilityZone"] for one in stage.crews["idle"].instances}
    record = stage.run()
    assert (record.method, record.outcome) == (MethodName.EMPTINESS, DisruptionOutcome.DONE), record
    (left,) = stage.members("idle")
    gone = set(zones) - {left}
    assert sorted(zones[one] for one in gone) == ZONES
    together = stage.tainted()[before:]
    assert len(together) == 3
    assert max(stage.first("node-tainted", object=one) for one in together) < min(
        stage.first("node-deleted", object=one) for one in together
    )
    last = stage.run()
    assert (last.method, ledger.group_size(stage.stack, "idle")) == (MethodName.EMPTINESS, (0, 0))
    assert stage.states(zones) <= {"shutting-down", "terminated"}
    assert stage.launches() == launches
    moved = [one["object"] for one in stage.facts("eviction-accepted")]
    assert not [name for name in moved if name.startswith(("kube-system/agent", "default/static"))]


def test_three_nodes_become_one_cheaper_one_and_the_dollars_of_the_plan_are_saved(stage):
    """The command shows the plan, starts its run and follows it."""
    nodes, before = names(stage, "shop-wide"), stage.dollars("shop-wide", "shop-small")
    answer = stage.leeward("plan", "--apply", "--yes", "--watch")
    assert answer.code == 0, answer.err
    (command,) = answer.document["commands"]
    assert (answer.document["method"], set(command["nodes"])) == ("consolidation", nodes)
    assert [one["instanceTypes"] for one in command["replacements"]] == [["m5.xlarge"]]
    assert command["savingsPerHour"] == pytest.approx(3 * PRICES["m5.2xlarge"] - PRICES["m5.xlarge"])
    assert before - stage.dollars("shop-wide", "shop-small") == pytest.approx(command["savingsPerHour"])
    assert command["disruptionCost"] == len(stage.pods("cart")) == 6
    assert stage.states(stage.crews["shop-wide"].instances) <= {"shutting-down", "terminated"}
    (new,) = stage.members("shop-small")
    name = stage.node(new)["metadata"]["name"]
    assert set(stage.pods("cart").values()) == {name}
    ready = stage.first("node-ready", object=name)
    assert all(ready < stage.first("eviction-accepted", node=node) for node in nodes if stage.evicted_from(node))
    assert stage.crews["shop-wide"].violations("cart") == []


def held_until(stage, app):
    """Wait until an Event says why the node of one of these pods stays: each node has one in a quarter of an hour."""

    def look():
        assert stage.decide() == []
        on = set(stage.pods(app).values())
        return [one["message"] for one in stage.events("DisruptionBlocked") if one["involvedObject"]["name"] in on]

    return stage.crews["worn"].until(look, f"an Event about a node of {app}")


def test_nodes_whose_pods_may_not_be_evicted_stay_and_an_event_says_why(stage):
    plan = stage.leeward("plan").document
    signed = stage.verdicts(plan, instance_with(stage, "signed"))["drift"]
    assert (plan["commands"], "opts out of disruption" in signed) == ([], True), signed
    assert all("pdb default/ledger prevents" in message for message in held_until(stage, "ledger"))
    assert {kind for _, kind in blockers(stage)} >= {"pdb-never", "do-not-disrupt"}
    assert not [one for one in stage.facts("eviction-refused") if one["object"].startswith("default/ledger")]


def blockers(stage):
    found = stage.leeward("blockers").document["blockers"]
    return {(one["owner"], one["kind"]) for one in found}


def test_a_pod_that_opts_out_no_longer_lets_its_node_go(stage):
    signed = instance_with(stage, "signed")
    node = stage.node(signed)["metadata"]["name"]
    (pod,) = stage.pods("signed")
    stage.patch(f"/api/v1/namespaces/default/pods/{pod}", {"metadata": {"annotations": {OPT_OUT: None}}})
    record = stage.run()
    assert (record.method, list(record.nodes)) == (MethodName.DRIFT, [node]), record
    assert stage.states([signed]) <= {"shutting-down", "terminated"}


def test_once_the_budget_of_the_pods_allows_it_their_nodes_are_replaced_two_at_a_time(stage):
    before = len(stage.tainted())
    stage.patch("/apis/policy/v1/namespaces/default/poddisruptionbudgets/ledger", {"spec": {"maxUnavailable": 4}})
    record = stage.run()
    assert (record.method, record.outcome) == (MethodName.DRIFT, DisruptionOutcome.DONE), record
    assert len(stage.tainted()) == before + 2
    assert stage.states(record.nodes.values()) <= {"shutting-down", "terminated"}
    assert stage.serves("worn")
    assert group_of(stage.stack, "worn")["SuspendedProcesses"] == []
