"""Where replacements go, on the state machine's own walk: zones, refusals, facts that are missing, and being killed."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.errors import AccessDeniedError, AwsUnavailableError, ClusterUnreachableError
from leeward.model import well_known
from leeward.model.facts import (
    FactKind,
    GroupTemplate,
    Sheet,
    cni_content,
    nodes_content,
    subnets_content,
    templates_content,
    types_content,
)
from leeward.model.group import AZ_REBALANCE, GroupInstance
from leeward.model.pod import Owner, Pod
from leeward.model.subnet import Pool
from leeward.model.termination import Cause, CauseKind, Replacement
from leeward.termination.capacity_ledger import ahead
from leeward.termination.replacing import ask_for_replacement
from leeward.termination.run import Next, NoticeKind, Run
from leeward.termination.steps import claim
from tests.fakes.builders import CLUSTER, GROUP, a_group, a_node, a_subject, a_subnet, an_instance
from tests.fakes.clock import START
from tests.fakes.network import M5_LARGE
from tests.fakes.system import FakeSystem
from tests.state_machines.walker import Walker

I = "i-0abc"  # noqa: E741  (the instance of every story)
A, B, C = "us-east-1a", "us-east-1b", "us-east-1c"
CORES = {A: 4000, B: 6000, C: 8000}


def a_pod(name="web-1", **more):
    return Pod(
        namespace="shop", name=name, uid=f"uid-{name}", node=f"node-{I}", phase="Running", grace_seconds=1, **more
    )


def a_system(*pods, free=(200, 200, 200), cores=None, ready=(I,), at=START, facts=True):
    """Three zones with a subnet each; the node that leaves is in the first."""
    group = replace(a_group(GROUP, I), subnets=("subnet-a", "subnet-b", "subnet-c"), zones=(A, B, C))
    node = replace(a_node(I), cpu=2000)
    system = FakeSystem(instances=[an_instance(I)], groups=[group], nodes=[node])
    for name, zone, left in zip("abc", (A, B, C), free, strict=True):
        system.network.by_id[f"subnet-{name}"] = a_subnet(f"subnet-{name}", zone=zone, free=left)
    if facts:
        contents = {
            FactKind.SUBNETS: subnets_content(system.network.by_id.values()),
            FactKind.INSTANCE_TYPES: types_content([M5_LARGE]),
            FactKind.NODES: nodes_content(cores or CORES, ready),
            FactKind.CNI: cni_content({}),
            FactKind.TEMPLATES: templates_content({}, {}),
        }
        for kind, content in contents.items():
            system.catalog.keep(CLUSTER, kind, Sheet(synced=at, content=content))
    for pod in pods:
        system.kubernetes.put_pod(pod)
    deadline = START + timedelta(minutes=2)
    cause = Cause(id="event-1", kind=CauseKind.SPOT_INTERRUPTION, at=START, deadline=deadline)
    system.claims.claim(a_subject(I), cause, START)
    return system


def ask(system):
    run = Run(instance=I, attempt=1, version=1, next=Next.REPLACE)
    return ask_for_replacement(run, {}, system.ports)


def subnets_launched_in(system):
    return [subnet for _, subnet, _ in system.groups.launches]


def kinds(run):
    return [notice.kind for notice in run.notices]


def test_the_leaving_nodes_own_cores_do_not_count_so_that_its_zone_gets_the_next_node():
    system = a_system(a_pod())
    run = ask(system)
    assert subnets_launched_in(system) == ["subnet-a"]
    assert run.notices == ()
    assert "fewest cores allocated (2 cores; us-east-1b 6 cores and us-east-1c 8 cores)" in run.why


def test_a_zone_with_fewer_cores_gets_it_and_the_event_says_why():
    system = a_system(a_pod(), cores={A: 12000, B: 6000, C: 8000})
    run = ask(system)
    assert subnets_launched_in(system) == ["subnet-b"]
    (event,) = system.kubernetes.events
    assert (event.about, event.reason, event.warning) == (f"node-{I}", "ReplacementElsewhere", False)
    assert "is in us-east-1b (subnet-b), not in us-east-1a" in event.message
    assert "fewest cores allocated (6 cores; us-east-1c 8 cores and us-east-1a 10 cores)" in event.message
    assert kinds(run) == [NoticeKind.ELSEWHERE]


def short_in(system, *zones, kind="m5.large", lasts=timedelta(minutes=10)):
    for zone in zones:
        system.catalog.mark_unavailable(CLUSTER, Pool(instance_type=kind, zone=zone), START + lasts)


def test_no_replacement_lands_where_ec2_is_taking_the_same_spot_capacity_back():
    system = a_system(a_pod())
    short_in(system, A)
    run = ask(system)
    assert subnets_launched_in(system) == ["subnet-b"]
    assert "EC2 is taking back spot capacity: m5.large in us-east-1a" in run.why


def test_a_shortage_of_another_type_or_one_that_is_over_moves_nothing():
    system = a_system(a_pod())
    short_in(system, A, kind="c5.large")
    short_in(system, A, lasts=timedelta())
    ask(system)
    assert subnets_launched_in(system) == ["subnet-a"]


def test_where_every_zone_is_short_they_keep_their_order():
    system = a_system(a_pod())
    short_in(system, A, B, C)
    ask(system)
    assert subnets_launched_in(system) == ["subnet-a"]


def test_a_short_zone_is_still_tried_when_the_others_refuse():
    system = a_system(a_pod())
    short_in(system, A)
    system.groups.short_of_capacity = {"subnet-b", "subnet-c"}
    ask(system)
    assert subnets_launched_in(system)[-1] == "subnet-a"


def test_a_group_of_on_demand_instances_minds_no_spot_shortage():
    system = a_system(a_pod())
    template = GroupTemplate(types=("m5.large",), zones=(A, B, C), capacity="on-demand", node={})
    content = templates_content({GROUP: template}, {})
    system.catalog.keep(CLUSTER, FactKind.TEMPLATES, Sheet(synced=START, content=content))
    short_in(system, A)
    ask(system)
    assert subnets_launched_in(system) == ["subnet-a"]


def test_a_zone_without_addresses_is_dropped_with_its_numbers():
    system = a_system(a_pod(), free=(19, 200, 200))
    run = ask(system)
    assert subnets_launched_in(system) == ["subnet-b"]
    assert "us-east-1a: subnet-a has 19 free, a node (m5.large) with 1 pod takes 20 IPs" in run.why
    record = system.claims.records[I]
    assert record.replacement.subnet == "subnet-b"
    assert "19 free" in record.replacement.reason


def test_with_no_addresses_anywhere_nothing_is_launched_and_node_and_pods_are_reported():
    pods = [a_pod(f"web-{number:02d}") for number in range(12)]
    agent = a_pod("agent", owner=Owner(api_version="apps/v1", kind="DaemonSet", name="agent"))
    system = a_system(*pods, agent, free=(3, 0, 5))
    run = ask(system)
    assert system.groups.launches == []
    assert "there is no subnet with enough available IP addresses" in run.why
    assert system.claims.records[I].replacement.reason == run.why
    reported = {event.about for event in system.kubernetes.events}
    assert reported == {f"node-{I}", *(pod.key for pod in pods[:10])}
    for event in system.kubernetes.events:
        assert (event.reason, event.warning) == ("NoSubnetIPs", True)
        assert "us-east-1c: subnet-c has 5 free" in event.message
    assert kinds(run) == [NoticeKind.NOWHERE]


def test_without_a_place_the_drain_goes_on_and_the_group_replaces_it():
    system = a_system(a_pod(), free=(0, 0, 0))
    assert Walker(system).run(I).ended == "Terminated"
    assert system.groups.terminated == [(I, False)]


def test_a_zone_that_refuses_for_lack_of_capacity_is_followed_by_the_next_best():
    system = a_system(a_pod())
    system.groups.short_of_capacity = {"subnet-a"}
    run = ask(system)
    assert subnets_launched_in(system) == ["subnet-b"]
    assert "us-east-1a refused: InsufficientInstanceCapacity" in run.why


def test_a_zone_that_refuses_is_never_followed_by_one_without_addresses():
    system = a_system(a_pod(), free=(200, 0, 0))
    system.groups.short_of_capacity = {"subnet-a"}
    run = ask(system)
    assert system.groups.launches == []
    assert "us-east-1a refused" in run.why


def test_addresses_that_have_gone_since_the_plan_was_made_are_looked_at_before_the_next_try():
    system = a_system(a_pod())
    system.groups.short_of_capacity = {"subnet-a"}
    original = system.groups.launch

    def launch(*, group, subnet, token):
        system.network.by_id["subnet-b"] = a_subnet("subnet-b", zone=B, free=1)
        return original(group=group, subnet=subnet, token=token)

    system.groups.launch = launch
    run = ask(system)
    assert subnets_launched_in(system) == ["subnet-c"]
    assert "us-east-1b: subnet-b has 1 free by now, 20 are needed" in run.why


def test_a_refusal_that_no_zone_helps_against_ends_the_tries():
    system = a_system(a_pod())
    system.groups.refuse_launch = "UnsupportedOperation: mixed purchase options"
    run = ask(system)
    assert system.groups.asked["launch"] == 1
    assert run.why == "UnsupportedOperation: mixed purchase options"
    assert [(event.about, event.reason) for event in system.kubernetes.events] == [(f"node-{I}", "LaunchRefused")]


def test_when_every_zone_refuses_the_node_is_reported_and_its_pods_are_not():
    system = a_system(a_pod())
    system.groups.short_of_capacity = {"subnet-a", "subnet-b", "subnet-c"}
    ask(system)
    assert [(event.about, event.reason) for event in system.kubernetes.events] == [(f"node-{I}", "ReplacementRefused")]


@pytest.mark.parametrize("cut", ["begin_plan", "launch", "event", "replaced"])
def test_killed_after_any_of_its_effects_it_launches_once_though_the_world_has_changed_meanwhile(cut):
    """By the second time another zone would be chosen: the plan says where the first has been."""
    system = a_system(a_pod(), cores={A: 12000, B: 6000, C: 8000})
    port = {"launch": system.groups, "event": system.kubernetes}.get(cut, system.claims)
    original = getattr(port, cut)

    def killed(*args, **kwargs):
        setattr(port, cut, original)
        original(*args, **kwargs)
        raise KeyboardInterrupt

    setattr(port, cut, killed)
    with pytest.raises(KeyboardInterrupt):
        ask(system)
    nodes = Sheet(synced=START + timedelta(seconds=1), content=nodes_content({A: 2000, B: 60000, C: 80000}, ()))
    system.catalog.keep(CLUSTER, FactKind.NODES, nodes)
    ask(system)
    assert subnets_launched_in(system) == ["subnet-b"]
    assert system.claims.records[I].replacement.subnet == "subnet-b"
    assert [event.reason for event in system.kubernetes.events] == ["ReplacementElsewhere"]


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_killed_between_two_zones_the_first_zone_is_not_tried_again(lost):
    """Its capacity is back by then: a launch there as well would be the second."""
    system = a_system(a_pod())
    system.groups.short_of_capacity = {"subnet-a"}
    first, other, plans = system.claims.begin_plan, system.claims.plan, []

    def killed_after(original):
        def plan(instance, written, **more):
            answer = original(instance, written, **more)
            plans.append(written)
            if len(plans) == lost:
                raise KeyboardInterrupt
            return answer

        return plan

    system.claims.begin_plan, system.claims.plan = killed_after(first), killed_after(other)
    if lost < 3:
        with pytest.raises(KeyboardInterrupt):
            ask(system)
        if lost == 2:
            system.groups.short_of_capacity = set()
    else:
        system.groups.fail("launch", AwsUnavailableError("answer lost"), times=1)
        with pytest.raises(AwsUnavailableError):
            ask(system)
    ask(system)
    assert subnets_launched_in(system) == ["subnet-b"]


def test_a_launch_that_was_made_before_the_instance_ended_is_still_followed_up():
    """Killed between launch and note; nothing would offset what no record names."""
    system = a_system(a_pod())
    original = system.claims.replaced

    def replaced(*_):
        system.claims.replaced = original
        raise KeyboardInterrupt

    system.claims.replaced = replaced
    with pytest.raises(KeyboardInterrupt):
        ask(system)
    system.instances.set_state(I, "shutting-down")
    begun = claim(Run(instance=I, attempt=1, version=1, next=Next.REPLACE), {"execution": f"{I}-1"}, system.ports)
    assert begun.next is Next.REPLACE
    assert ask(system).next is Next.DRAIN
    assert system.claims.records[I].replacement.launched
    assert len(system.groups.launches) == 1


def test_an_api_server_that_does_not_answer_costs_no_launch_and_the_node_is_taken_for_a_full_one():
    system = a_system(a_pod(), free=(29, 200, 200))
    system.kubernetes.down = True
    run = ask(system)
    assert subnets_launched_in(system) == ["subnet-b"]
    assert "a node (m5.large) with 29 pods takes 30 IPs" in run.why
    assert "the node is taken for a full one" in run.notices[0].text
    assert system.kubernetes.asked["event"] == 0


def test_facts_that_are_old_are_used_and_named():
    system = a_system(a_pod(), cores={A: 12000, B: 6000, C: 8000}, at=START - timedelta(minutes=20))
    run = ask(system)
    assert subnets_launched_in(system) == ["subnet-b"]
    assert kinds(run) == [NoticeKind.STALE_FACTS, NoticeKind.ELSEWHERE]
    assert "nodes were last synced 20 min ago" in run.notices[0].text


def test_as_long_as_nothing_was_synced_it_goes_to_the_same_zone():
    system = a_system(a_pod(), facts=False)
    run = ask(system)
    assert subnets_launched_in(system) == ["subnet-a"]
    assert "never synced: subnets, instance-types, templates, nodes, cni" in run.notices[0].text


def test_free_addresses_that_cannot_be_asked_for_are_taken_as_they_were_synced():
    system = a_system(a_pod(), free=(3, 200, 200))
    system.network.fail("subnets", AwsUnavailableError("ec2:DescribeSubnets"))
    run = ask(system)
    assert subnets_launched_in(system) == ["subnet-b"]
    assert "free addresses could not be had" in run.notices[0].text


def test_no_fact_at_all_still_launches_in_the_same_subnet():
    system = a_system(a_pod())
    system.catalog.fail("read", AwsUnavailableError("dynamodb:BatchGetItem"))
    system.network.fail("subnets", AwsUnavailableError("ec2:DescribeSubnets"))
    system.kubernetes.fail("node", ClusterUnreachableError("500"))
    run = ask(system)
    assert subnets_launched_in(system) == ["subnet-a"]
    assert kinds(run) == [NoticeKind.STALE_FACTS]


def newcomers(system, *names, subnet="subnet-a", ips=1, launched=START):
    group = system.groups.by_name[GROUP]
    members = tuple(GroupInstance(id=name, zone=A, lifecycle="InService") for name in names)
    group = replace(group, instances=(*group.instances, *members), suspended=(AZ_REBALANCE,))  # addresses alone decide
    system.groups.by_name[GROUP] = group
    for name in names:
        system.instances.put(replace(an_instance(name), subnet=subnet, ips=ips, launched=launched))


def test_addresses_promised_to_launches_that_are_no_ready_nodes_yet_are_subtracted():
    system = a_system(a_pod(), free=(57, 200, 200))
    newcomers(system, "i-0new1", "i-0new2", launched=START - timedelta(minutes=1))
    run = ask(system)
    assert subnets_launched_in(system) == ["subnet-b"]
    assert "subnet-a has 19 free (38 promised to launches)" in run.why


def test_what_ec2_counts_for_a_newcomer_already_is_not_promised_once_more():
    system = a_system(a_pod(), free=(21, 200, 200))
    newcomers(system, "i-0new1", ips=20, launched=START - timedelta(minutes=1))
    ask(system)
    assert subnets_launched_in(system) == ["subnet-a"]


def test_an_instance_that_never_became_a_node_is_promised_nothing_any_more():
    system = a_system(a_pod(), free=(21, 200, 200))
    newcomers(system, "i-0lost", launched=START - timedelta(minutes=20))
    ask(system)
    assert subnets_launched_in(system) == ["subnet-a"]


def test_cores_of_a_node_launched_since_the_count_are_added_to_its_zone():
    system = a_system(a_pod(), cores={A: 7000, B: 6000, C: 8000})
    newcomers(system, "i-0new1", ips=20, launched=START)
    run = ask(system)
    assert subnets_launched_in(system) == ["subnet-b"]
    assert "us-east-1a 7 cores" in run.why


def a_volume(zone):
    terms = [{"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}]}]
    return {
        "metadata": {"name": "pv-1", "labels": {}},
        "spec": {
            "claimRef": {"namespace": "shop", "name": "data"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        },
    }


def test_a_volume_keeps_the_replacement_in_its_zone_and_volumes_are_only_asked_for_where_a_pod_has_one():
    system = a_system(a_pod(claims=("data",)), cores={A: 12000, B: 6000, C: 8000})
    system.kubernetes.volume_list = [a_volume(A)]
    ask(system)
    assert subnets_launched_in(system) == ["subnet-a"]
    without = a_system(a_pod())
    ask(without)
    assert without.kubernetes.asked["volumes"] == 0


def test_volumes_that_may_not_be_read_cost_neither_the_pods_nor_the_launch():
    system = a_system(a_pod(claims=("data",)), cores={A: 12000, B: 6000, C: 8000})
    system.kubernetes.fail("volumes", AccessDeniedError("list persistentvolumes"))
    run = ask(system)
    assert subnets_launched_in(system) == ["subnet-b"]
    assert "a node (m5.large) with 1 pod takes 20 IPs" in run.why
    assert "volumes could not be had: list persistentvolumes" in run.notices[0].text
    assert [event.reason for event in system.kubernetes.events] == ["ReplacementElsewhere"]


def test_a_volume_whose_zone_has_no_addresses_leaves_no_place():
    system = a_system(a_pod(claims=("data",)), free=(0, 200, 200))
    system.kubernetes.volume_list = [a_volume(A)]
    run = ask(system)
    assert system.groups.launches == []
    assert "us-east-1b: not allowed by volume pv-1 of pod shop/web-1" in run.why


@pytest.mark.parametrize("key", [well_known.SUBNET_LABEL, well_known.CAST_SUBNET_LABEL])
def test_a_pod_that_asks_for_a_subnet_gets_it(key):
    system = a_system(a_pod(node_selector={key: "subnet-c"}))
    ask(system)
    assert subnets_launched_in(system) == ["subnet-c"]


def test_pods_on_the_hosts_network_take_no_address():
    system = a_system(*[a_pod(f"host-{n}", host_network=True) for n in range(9)], a_pod(), free=(20, 0, 0))
    ask(system)
    assert subnets_launched_in(system) == ["subnet-a"]


def test_where_addresses_cannot_be_counted_the_zone_is_chosen_by_cores_and_the_reason_says_so():
    system = a_system(a_pod(), free=(3, 200, 200))
    prefixes = Sheet(synced=START, content=cni_content({"ENABLE_PREFIX_DELEGATION": "true"}))
    system.catalog.keep(CLUSTER, FactKind.CNI, prefixes)
    run = ask(system)
    assert subnets_launched_in(system) == ["subnet-a"]
    assert "ENABLE_PREFIX_DELEGATION is on" in run.why


def test_the_same_instance_draws_the_same_lot_every_time():
    def drawn():
        system = a_system(a_pod(), cores={A: 12000, B: 6000, C: 6000})
        ask(system)
        return subnets_launched_in(system)

    assert drawn() == drawn()


def test_an_event_that_cannot_be_written_costs_nothing():
    system = a_system(a_pod(), cores={A: 12000, B: 6000, C: 8000})
    system.kubernetes.fail("event", ClusterUnreachableError("500"))
    run = ask(system)
    assert subnets_launched_in(system) == ["subnet-b"]
    assert run.next is Next.DRAIN


def another_warning(system, name="i-0def", at=START):
    """A second node of the same zone is warned, at the same moment where no other is given."""
    group = system.groups.by_name[GROUP]
    member = GroupInstance(id=name, zone=A, lifecycle="InService")
    system.groups.by_name[GROUP] = replace(group, instances=(*group.instances, member))
    system.instances.put(an_instance(name))
    system.kubernetes.put_node(replace(a_node(name), cpu=2000))
    cause = Cause(id="event-2", kind=CauseKind.SPOT_INTERRUPTION, at=at, deadline=at + timedelta(minutes=2))
    system.claims.claim(a_subject(name, node=f"node-{name}"), cause, at)


def ask_for(system, name):
    return ask_for_replacement(Run(instance=name, attempt=1, version=1, next=Next.REPLACE), {}, system.ports)


def test_two_replacements_at_the_same_moment_see_each_others_cores():
    """What EC2 has launched is not to be seen yet: alone each would go to the second zone."""
    system = a_system(a_pod(), cores={A: 8000, B: 5000, C: 9000}, ready=(I, "i-0def"))
    another_warning(system)
    ask(system)
    ask_for(system, "i-0def")
    assert subnets_launched_in(system) == ["subnet-b", "subnet-a"]


def test_two_replacements_at_the_same_moment_do_not_take_the_same_addresses():
    system = a_system(a_pod(), free=(0, 25, 200), cores={A: 8000, B: 1000, C: 9000}, ready=(I, "i-0def"))
    another_warning(system)
    ask(system)
    run = ask_for(system, "i-0def")
    assert subnets_launched_in(system) == ["subnet-b", "subnet-c"]
    assert "us-east-1b and us-east-1a dropped" in run.why


def test_a_promise_is_past_after_two_minutes_and_what_was_launched_counts_for_itself():
    system = a_system(a_pod(), free=(0, 25, 200), cores={A: 8000, B: 1000, C: 9000}, ready=(I, "i-0def"))
    another_warning(system, at=START + timedelta(minutes=2))
    ask(system)
    system.clock.advance(minutes=2)
    ask_for(system, "i-0def")
    assert subnets_launched_in(system) == ["subnet-b", "subnet-b"]


def test_a_newcomer_that_can_be_seen_is_not_counted_by_its_promise_too():
    system = a_system(a_pod(), free=(0, 41, 200), cores={A: 8000, B: 1000, C: 9000}, ready=(I, "i-0def"))
    another_warning(system)
    ask(system)
    (launched,) = system.claims.records[I].replacement.launched
    system.instances.put(replace(an_instance(launched), subnet="subnet-b", zone=B, ips=1, launched=START))
    system.network.by_id["subnet-b"] = a_subnet("subnet-b", zone=B, free=24)
    ask_for(system, "i-0def")
    assert subnets_launched_in(system) == ["subnet-b", "subnet-b"]


def test_who_loses_the_race_for_a_promise_places_anew():
    system = a_system(a_pod(), free=(0, 25, 200), cores={A: 8000, B: 1000, C: 9000}, ready=(I, "i-0def"))
    another_warning(system)
    original, first = system.catalog.reserve, []

    def reserve(cluster, instance, made, *, after):
        if instance == I and not first:
            first.append(made)
            ask_for(system, "i-0def")
        return original(cluster, instance, made, after=after)

    system.catalog.reserve = reserve
    ask(system)
    assert subnets_launched_in(system) == ["subnet-b", "subnet-c"]


def test_addresses_are_counted_for_the_greediest_type_that_the_groups_template_allows():
    """The group names no type itself: only its template, as fn sync has recorded it, says that a bigger node may
    come, which takes 30 addresses an interface.
    """
    system = a_system(a_pod(), free=(45, 45, 200))
    greedy = replace(M5_LARGE, name="m5.24xlarge", max_enis=15, ips_per_eni=30)
    template = GroupTemplate(types=("m5.large", "m5.24xlarge"), zones=(A, B, C), capacity="on-demand", node={})
    for kind, content in (
        (FactKind.TEMPLATES, templates_content({GROUP: template}, {})),
        (FactKind.INSTANCE_TYPES, types_content([M5_LARGE, greedy])),
    ):
        system.catalog.keep(CLUSTER, kind, Sheet(synced=START, content=content))
    ask(system)
    assert subnets_launched_in(system) == ["subnet-c"]


def test_a_launch_that_was_refused_promises_nothing_any_more():
    system = a_system(a_pod(), free=(0, 25, 200), cores={A: 8000, B: 1000, C: 9000}, ready=(I, "i-0def"))
    another_warning(system)
    system.groups.refuse_launch = "MaxSize is reached"
    ask(system)
    system.groups.refuse_launch = None
    ask_for(system, "i-0def")
    assert subnets_launched_in(system) == ["subnet-b"]


def test_promises_that_cannot_be_read_or_written_cost_no_launch():
    system = a_system(a_pod())
    system.catalog.fail("reservations", AwsUnavailableError("dynamodb:GetItem"))
    run = ask(system)
    assert subnets_launched_in(system) == ["subnet-a"]
    assert "what others are promised could not be had: dynamodb:GetItem" in run.notices[0].text


def test_a_step_that_another_one_has_overtaken_gives_its_own_launch_up():
    """Its execution was stopped while it ran on; the next one found capacity in another subnet."""
    system = a_system()
    launch, other = system.groups.launch, Replacement(launched=("i-0other",), subnet="subnet-b")

    def overtaken(**asked):
        answer = launch(**asked)
        system.claims.replaced(I, other, START)
        return answer

    system.ports.groups.launch = overtaken
    assert "i-0other" in ask(system).why
    assert system.claims.records[I].replacement == other
    ((_, subnet, _),) = system.groups.launches
    (given_up,) = [record for name, record in system.claims.records.items() if name != I]
    assert (given_up.subject.subnet, given_up.subject.node) == (subnet, None)
    assert [(cause.kind, cause.surge) for cause in given_up.causes] == [(CauseKind.SURPLUS, ahead(given_up.instance))]


def test_a_step_that_launched_nothing_keeps_the_launch_of_the_one_that_has_overtaken_it():
    system = a_system()
    other = Replacement(launched=("i-0other",), subnet="subnet-b")

    def refused(**_):
        system.claims.replaced(I, other, START)
        return Replacement(reason="0 of 1", no_capacity=True)

    system.ports.groups.launch = refused
    ask(system)
    assert system.claims.records[I].replacement == other
    assert list(system.claims.records) == [I]
