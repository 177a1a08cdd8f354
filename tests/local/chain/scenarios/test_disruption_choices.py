"""Story of the choices of voluntary disruption on a deployed stack: which node is removed, what replaces it, and what
holds a node.

The tests are its stages, in their order: run the file as a whole. What is asserted is what the local AWS and the local
cluster recorded."""

import pytest

from leeward.disruption.command import MethodName
from leeward.disruption.record import DisruptionOutcome
from local import fleet
from local.demo import ledger
from tests.local.chain.conftest import forget_what_is_cached
from tests.local.chain.groups.test_node_group_upgrade import another_image
from tests.local.chain.scenarios.disruption_stage import ALWAYS, OPT_OUT, POOL, PRICES, deployed, policy

pytestmark = [pytest.mark.local, pytest.mark.long]

NEVER, FULL = {"consolidationPolicy": "Never", "drift": False}, "1200m"  # of a node's two CPUs
GONE = {"shutting-down", "terminated"}
RANKED = {"consolidateAfter": "1s", "drift": False, "expireAfter": "20m", "budgets": [{"nodes": 1}]}
PINNED = {"kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1", "metadata": {"name": "high"}, "value": 10**8}


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    with deployed(tmp_path_factory.mktemp("disruption-choices")) as found:
        found.build("dear-wide", 1, kind="m5.2xlarge")
        found.build("dear-small", 0)
        found.build("rank", 3)
        found.build("full", 6)
        found.build("held", 3)
        found.build("kept", 1)
        found.build("both-roll", 1, pool="roll")
        found.build("both-idle", 1)
        found.apply_workloads(
            PINNED,
            fleet.deployment("solo", 2, cpu="400m", grace=1, on={POOL: "dear"}),
            fleet.deployment("full", 6, cpu=FULL, grace=1, on={POOL: "full"}),
            *(
                fleet.deployment("roll", 1, cpu=FULL, grace=1, on={POOL: "roll"}),
                fleet.budget("roll", minAvailable=0),
            ),
        )
        found.settle()
        yield found


def quiet(**active):
    """The policies of every group, of which only these disrupt: pool -> keywords of its policy."""
    pools = ("dear", "rank", "full", "held", "kept", "both")
    return [policy(pool, **active.get(pool, NEVER)) for pool in pools]


def test_a_saving_below_the_least_of_the_policy_changes_nothing(stage):
    rules = {"consolidateAfter": "1s", "drift": False, "minimumSavings": {"perHour": 1}}
    stage.apply(quiet(dear=rules))
    (wide,) = stage.crews["dear-wide"].instances
    stage.crews["dear-wide"].until(lambda: len(stage.pods("solo")) == 2, "its pods")

    def look():
        assert stage.decide() == []
        return stage.verdicts(stage.leeward("plan").document, wide)["consolidation"]

    said = stage.crews["dear-wide"].until(lambda: "consolidateAfter" not in (why := look()) and why, "a verdict")
    assert "it would save $0.288 an hour, minimumSavings asks for $1.00" in said, said
    assert (stage.tainted(), stage.launches()) == ([], 0)


def leave_free(stage, count):
    """Let others leave so many addresses in every subnet but the last; None: they release theirs."""
    for subnet in stage.network.subnets[:-1]:
        stage.stack.control("PUT", f"subnets/{subnet}", {"freeIps": count})


def test_one_node_is_replaced_by_a_cheaper_one_of_another_group_where_addresses_are_free(stage):
    stage.apply(quiet(dear={"consolidateAfter": "1s", "drift": False}))
    (wide,) = stage.crews["dear-wide"].instances
    node, before = stage.crews["dear-wide"].node_name(wide), stage.dollars("dear-wide", "dear-small")
    (command,) = stage.leeward("plan").document["commands"]
    leave_free(stage, 5)
    record = stage.run()
    leave_free(stage, None)
    assert (record.method, record.outcome) == (MethodName.CONSOLIDATION, DisruptionOutcome.DONE), record
    assert stage.states([wide]) <= GONE
    (new,) = stage.members("dear-small")
    launched = stage.instance(new)
    assert (launched["InstanceType"], launched["SubnetId"]) == ("m5.large", stage.network.subnets[-1])
    assert ledger.group_size(stage.stack, "dear-wide") == (0, 0)
    assert stage.first("node-ready", object=stage.node(new)["metadata"]["name"]) < stage.first(
        "eviction-accepted", node=node
    )
    saved = PRICES["m5.2xlarge"] - PRICES["m5.large"]
    assert command["savingsPerHour"] == pytest.approx(saved)
    assert before - stage.dollars("dear-wide", "dear-small") == pytest.approx(saved)
    assert command["disruptionCost"] == 2  # its two pods


def alone_on(stage, instance, *objects):
    """Apply workloads while every other node of the group is cordoned, and wait for their pods."""
    crew = stage.crews["rank"]
    others = [crew.node_name(one) for one in stage.members("rank") if one != instance]
    for name in others:
        stage.patch(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": True}})
    stage.apply_workloads(*objects)
    for thing in objects:
        name, wanted = thing["metadata"]["name"], thing["spec"]["replicas"]
        crew.until(lambda name=name, wanted=wanted: len(stage.pods(name)) == wanted, f"pods of {name}")
        assert set(stage.pods(name).values()) == {crew.node_name(instance)}
    for name in others:
        stage.patch(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": None}})


def one_pod(name, count=1, **spec):
    thing = fleet.deployment(name, count, grace=1, on={POOL: "rank"})
    thing["spec"]["template"]["spec"].update(spec)
    return thing


def test_of_nodes_alike_the_one_with_fewer_and_lesser_pods_that_expires_first_is_removed(stage):
    """Each of the other three differs from it in one thing: two pods, a pod of high priority, a longer life."""
    crew = stage.crews["rank"]
    two, high, chosen = crew.instances
    alone_on(stage, two, one_pod("two", 2))
    alone_on(stage, high, one_pod("high", priorityClassName="high"))
    alone_on(stage, chosen, one_pod("older"))
    stage.stack.client("autoscaling").set_desired_capacity(AutoScalingGroupName="rank", DesiredCapacity=4)
    crew.until(lambda: len(stage.members("rank")) == 4 and stage.serves("rank"), "a fourth node")
    (younger,) = set(stage.members("rank")) - set(crew.instances)
    alone_on(stage, younger, one_pod("younger"))
    node, before, launches = crew.node_name(chosen), len(stage.tainted()), stage.launches()
    stage.apply(quiet(rank=RANKED))
    record = stage.run()
    assert (record.method, record.outcome) == (MethodName.CONSOLIDATION, DisruptionOutcome.DONE), record
    assert stage.tainted()[before:] == [node]
    assert stage.states([chosen]) <= GONE
    assert stage.states([two, high, younger]) == {"running"}
    assert (ledger.group_size(stage.stack, "rank"), stage.launches()) == ((3, 3), launches)
    assert [pod.rsplit("-", 2)[0] for pod in stage.evicted_from(node)] == ["default/older"]


def test_nodes_that_stay_say_why_once_in_ten_minutes_where_their_policy_consolidates(stage):
    """An Event is due about once in a quarter of an hour: the planner is called until one of seven nodes has one."""
    rules = {"consolidateAfter": "1s", "drift": False}
    stage.apply(quiet(full=rules, dear=rules))
    crew = stage.crews["full"]
    crew.until(lambda: len(set(stage.pods("full").values())) == len(crew.instances), "a pod on each node")

    def look():
        assert stage.decide() == []
        nodes = {stage.node(one)["metadata"]["name"] for one in (*crew.instances, *stage.members("dear-small"))}
        mine = [one for one in stage.events("Unconsolidatable") if one["involvedObject"]["name"] in nodes]
        return mine if any("has no other place" in one["message"] for one in mine) else None

    crew.until(look, "Events about the nodes")
    for _ in range(3):
        stage.decide()
    said = stage.events("Unconsolidatable")
    periods = [(one["involvedObject"]["name"], one["firstTimestamp"][:15]) for one in said]  # to ten minutes
    assert len(periods) == len(set(periods)), periods
    quiet_nodes = {stage.node(one)["metadata"]["name"] for name in ("held", "kept") for one in stage.members(name)}
    assert not {one["involvedObject"]["name"] for one in said} & quiet_nodes


EMPTY = {"ttlSecondsAfterEmpty": 1, "drift": False, "budgets": [{"nodes": "100%"}]}


def test_empty_nodes_that_opt_out_or_whose_window_is_closed_stay(stage):
    """`held` has a budget of none in a window that is open now; then, in one that is closed, two of its nodes opt out,
    and so does the whole of `kept`.
    """
    before = stage.tainted()
    stage.apply(quiet(held={**EMPTY, "budgets": [{"nodes": "100%"}, {"nodes": 0, **ALWAYS}]}))
    for _ in range(2):
        assert stage.decide() == []
    held = stage.leeward("inspect", "budget").document["budgets"]
    assert {one["allowed"] for one in held if one["policy"] == "held" and one["reason"] == "Empty"} == {0}
    of_all, of_consolidation, free = stage.crews["held"].instances
    stage.annotate(of_all, OPT_OUT, "true")
    stage.annotate(of_consolidation, "karpenter.sh/do-not-consolidate", "true")
    closed = {**EMPTY, "budgets": [{"nodes": "100%"}, {"nodes": 0, "schedule": "0 0 29 feb *", "duration": "1m"}]}
    stage.apply(quiet(held=closed, kept={**EMPTY, "doNotDisrupt": True}))
    node = stage.crews["held"].node_name(free)
    stage.run()
    assert stage.tainted() == [*before, node]
    assert stage.decide() == []
    assert stage.states([of_all, of_consolidation, *stage.members("kept")]) == {"running"}
    plan = stage.leeward("plan").document
    assert "opts out of disruption" in stage.verdicts(plan, of_all)["emptiness"]
    assert "opts out of consolidation" in stage.verdicts(plan, of_consolidation)["emptiness"]
    assert "doNotDisrupt" in stage.verdicts(plan, stage.members("kept")[0])["emptiness"]


def test_without_their_opt_outs_they_are_removed_together(stage):
    instances = [*stage.members("held"), *stage.members("kept")]
    for one in stage.members("held"):
        stage.annotate(one, OPT_OUT, None)
        stage.annotate(one, "karpenter.sh/do-not-consolidate", None)
    stage.apply(quiet(held=EMPTY, kept=EMPTY))
    record = stage.run()
    assert (record.method, set(record.nodes.values())) == (MethodName.EMPTINESS, set(instances)), record
    assert stage.states(instances) <= GONE


SHARED = {**EMPTY, "consolidationPolicy": "WhenEmpty", "budgets": [{"nodes": 1, "reasons": ["Upgrade", "Empty"]}]}
PDB = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/roll"


def test_a_freeze_holds_an_upgrade_and_disruption_of_the_same_policy(stage):
    """The upgrade begins and waits; the other group of the policy has a node that is empty."""
    crew, before, launches = stage.crews["both-roll"], stage.tainted(), stage.launches()
    crew.until(lambda: stage.pods("roll"), "its pod")
    stage.apply(quiet(both=SHARED), freeze=[ALWAYS])
    started = stage.leeward("upgrade", "start", "both-roll", "--ami", another_image(stage.stack, "both-roll"), "--yes")
    assert started.code == 0, started.document
    status = ("upgrade", "status", "both-roll")
    crew.until(lambda: stage.leeward(*status).document["phase"] == "waiting", "an upgrade that waits")
    for _ in range(2):  # of the empty node the time has passed at the second
        assert stage.decide() == []
    assert (stage.tainted(), stage.launches()) == (before, launches)
    assert stage.serves("both-roll")


def test_a_budget_that_an_upgrade_uses_up_holds_disruption_until_its_end(stage):
    """Both groups of the policy share one node for the reasons Upgrade and Empty."""
    crew, idle = stage.crews["both-roll"], stage.crews["both-idle"]
    (old,), (empty,) = crew.instances, idle.instances
    node = crew.node_name(old)
    stage.patch(PDB, {"spec": {"minAvailable": 1}})
    stage.apply(quiet(both=SHARED))
    forget_what_is_cached(stage.stack, "leeward-upgrade")
    crew.until(lambda: [one for one in stage.facts("eviction-refused") if one["node"] == node], "a refused eviction")
    for _ in range(2):
        assert stage.decide() == []
    assert idle.node_name(empty) not in stage.tainted()
    assert "budget" in stage.verdicts(stage.leeward("plan").document, empty)["emptiness"]
    stage.patch(PDB, {"spec": {"minAvailable": 0}})
    crew.until(lambda: stage.states([old]) <= GONE, "the end of the old node")
    record = stage.run()
    assert list(record.nodes.values()) == [empty]
    assert stage.states([empty]) <= GONE
    crew.until(lambda: stage.executions("node-group-upgrade") == ["SUCCEEDED"], "the end of the upgrade")
