"""What fn sync writes down, when it asks again, and that one part that fails leaves the others in place."""

from dataclasses import replace
from datetime import timedelta

from leeward.errors import AccessDeniedError, AwsUnavailableError, ClusterUnreachableError, ObjectGoneError
from leeward.model.facts import KEPT_BY_SYNC, ClusterFacts, FactKind
from leeward.model.launch import LaunchSource, Override
from leeward.policy.document import DesiredNode
from leeward.sync import handler
from leeward.sync.controller import sync_once
from tests.emitted import series_of
from tests.fakes.builders import CLUSTER, GROUP, a_group, a_node, a_policy, a_subnet, an_instance, policies
from tests.fakes.clock import START
from tests.fakes.network import M5_LARGE
from tests.fakes.system import FakeSystem

AWS_NODE = {
    "metadata": {"namespace": "kube-system", "name": "aws-node"},
    "spec": {
        "template": {
            "spec": {"containers": [{"name": "aws-node", "env": [{"name": "WARM_IP_TARGET", "value": "2"}]}]},
        }
    },
}


def a_system(*members, group=None, nodes=None):
    members = members or ("i-0a",)
    return FakeSystem(
        instances=[an_instance(name) for name in members],
        groups=[group or a_group(GROUP, *members)],
        nodes=[replace(a_node(name), cpu=2000) for name in members] if nodes is None else nodes,
    )


def facts_of(system):
    return ClusterFacts.from_sheets(system.catalog.read(CLUSTER))


def test_everything_that_a_placement_needs_is_written_down_with_its_age():
    system = a_system("i-0a", "i-0b")
    system.kubernetes.cni = AWS_NODE
    synced = sync_once(system.ports)
    facts = facts_of(system)
    assert (synced.warnings, synced.errors) == ([], [])
    assert facts.subnets == (a_subnet(),)
    assert facts.types == {"m5.large": M5_LARGE}
    assert facts.cores == {"us-east-1a": 4000}
    assert facts.ready == {"i-0a", "i-0b"}
    assert facts.cni == {"WARM_IP_TARGET": "2"}
    assert facts.prices.on_demand == {"m5.large": 0.096}
    assert facts.prices.spot == {"m5.large": {"us-east-1a": 0.032}}
    assert facts.synced == dict.fromkeys(KEPT_BY_SYNC, START)


def test_a_cluster_without_the_vpc_cni_says_so_and_one_never_looked_at_is_distinguished():
    system = a_system()
    assert facts_of(system).missing() == KEPT_BY_SYNC
    sync_once(system.ports)
    facts = facts_of(system)
    assert facts.cni is None
    assert facts.missing() == ()


def test_types_that_a_group_may_launch_are_looked_up_before_any_of_them_runs():
    group = replace(a_group(GROUP), launch=LaunchSource(overrides=(Override(instance_type="c5.large"),)))
    system = a_system(group=group, nodes=[])
    system.launches.types["c5.large"] = replace(M5_LARGE, name="c5.large")
    sync_once(system.ports)
    assert set(facts_of(system).types) == {"c5.large"}


def test_subnets_that_the_cni_may_discover_are_kept_beside_the_groups_own():
    system = a_system()
    tagged = a_subnet("subnet-cni", tags={"kubernetes.io/role/cni": "1"})
    system.network.by_id |= {"subnet-cni": tagged, "subnet-other": a_subnet("subnet-other")}
    sync_once(system.ports)
    assert {subnet.id for subnet in facts_of(system).subnets} == {"subnet-a", "subnet-cni"}


def test_prices_are_asked_for_once_an_hour_and_the_rest_every_time():
    system = a_system()
    for _ in range(12):
        sync_once(system.ports)
        system.clock.advance(minutes=5)
    assert system.price_list.asked["on_demand"] == 1
    assert system.network.asked["subnets"] == 12
    sync_once(system.ports)
    assert system.price_list.asked["on_demand"] == 2


def test_a_price_list_that_is_not_there_leaves_the_old_prices_and_the_other_facts_in_place():
    system = a_system()
    sync_once(system.ports)
    system.clock.advance(minutes=90)
    system.price_list.fail("on_demand", ObjectGoneError("partition aws-iso has no price list"))
    synced = sync_once(system.ports)
    assert synced.errors == []
    assert synced.warnings == ["blue: prices: partition aws-iso has no price list"]
    facts = facts_of(system)
    assert facts.prices.on_demand == {"m5.large": 0.096}
    assert facts.stale(system.clock.now()) == (FactKind.PRICES,)
    assert synced.out_of_date == [(CLUSTER, FactKind.PRICES)]


def test_facts_that_could_not_be_renewed_once_are_not_out_of_date_yet():
    system = a_system()
    sync_once(system.ports)
    system.clock.advance(minutes=5)
    system.network.fail("subnets", AwsUnavailableError("no answer"))
    assert sync_once(system.ports).out_of_date == []
    system.clock.advance(minutes=11)
    assert sync_once(system.ports).out_of_date == [(CLUSTER, FactKind.SUBNETS)]
    system.network.heal()
    assert sync_once(system.ports).out_of_date == []


def test_facts_that_were_never_gathered_are_missing_and_not_out_of_date():
    """Without a price list, replacements are launched as well: a condition that no operator can end is no alarm."""
    system = a_system()
    system.price_list.fail("on_demand", ObjectGoneError("partition aws-iso has no price list"))
    sync_once(system.ports)
    system.clock.advance(hours=3)
    assert sync_once(system.ports).out_of_date == []


def test_facts_out_of_date_are_counted_by_cluster_and_kind(capsys, monkeypatch):
    system = a_system()
    sync_once(system.ports)
    system.clock.advance(minutes=20)
    system.network.fail("subnets", AwsUnavailableError("no answer"))
    monkeypatch.setattr(handler.wiring, "invocation_ports", lambda _: system.ports)
    handler.handle({}, None)
    sync = {"service": "sync"}
    assert series_of(capsys.readouterr().out, "FactsOutOfDate") == [
        sync,
        sync | {"cluster": CLUSTER},
        sync | {"cluster": CLUSTER, "cause": "subnets"},
    ]


def test_a_cluster_that_does_not_answer_stops_neither_hooks_nor_subnets():
    system = a_system()
    system.kubernetes.down = True
    synced = sync_once(system.ports)
    assert synced.hooks == [GROUP]
    assert synced.facts == [
        "blue/templates",
        "blue/subnets",
        "blue/instance-types",
        "blue/capacity-blocks",
        "blue/node-repair",
        "blue/named-hooks",
        "blue/prices",
    ]
    assert synced.warnings == ["blue: nodes: the fake API is down"]


def test_types_once_known_stay_while_it_is_unknown_which_are_in_use():
    """Found by the simulation: an API server that was away for one run left no type's limits, and no zone was full."""
    system = a_system()
    sync_once(system.ports)
    system.kubernetes.down = True
    system.clock.advance(minutes=5)
    sync_once(system.ports)
    assert set(facts_of(system).types) == {"m5.large"}


def test_types_are_not_overwritten_when_what_was_known_cannot_be_read():
    system = a_system()
    sync_once(system.ports)
    system.catalog.fail("read", AwsUnavailableError("dynamodb:BatchGetItem"), times=1)
    synced = sync_once(system.ports)
    assert "blue/instance-types" not in synced.facts
    assert synced.warnings == ["blue: dynamodb:BatchGetItem"]


def test_one_kind_that_is_denied_is_named_and_the_others_are_kept():
    system = a_system()
    system.launches.fail("instance_types", AccessDeniedError("ec2:DescribeInstanceTypes"))
    synced = sync_once(system.ports)
    denied = "ec2:DescribeInstanceTypes"
    assert synced.warnings == [f"blue: templates: {denied}", f"blue: instance-types: {denied}"]
    kept = {"subnets", "nodes", "cni", "capacity-blocks", "node-repair", "named-hooks", "prices"}
    assert set(synced.facts) == {f"blue/{kind}" for kind in kept}


def test_hooks_that_a_removed_policy_named_are_remembered_for_two_days():
    system = a_system()
    named, removed = policies(a_policy(hooks=("drain-me",))), policies(a_policy("other", "batch-*"))
    for hours, written, known in ((0, named, True), (47, removed, True), (2, removed, False), (0, named, True)):
        system.clock.advance(hours=hours)
        system.clusters.policies_of[CLUSTER] = written
        sync_once(system.ports)
        hooks = system.catalog.named_hooks(CLUSTER)
        assert [(name, known.names) for name, known in hooks.items()] == ([(GROUP, ("drain-me",))] if known else [])


def test_a_hook_that_a_policy_names_no_longer_is_forgotten_at_once():
    system = a_system()
    for written in (policies(a_policy(hooks=("drain-me",))), policies(a_policy())):
        system.clusters.policies_of[CLUSTER] = written
        sync_once(system.ports)
    assert system.catalog.named_hooks(CLUSTER) == {}


def test_facts_older_than_fifteen_minutes_are_stale_and_prices_after_seventy_five():
    system = a_system()
    sync_once(system.ports)
    facts = facts_of(system)
    assert facts.stale(START + timedelta(minutes=15)) == ()
    later = facts.stale(START + timedelta(minutes=16))
    assert set(later) == set(KEPT_BY_SYNC) - {FactKind.PRICES}
    assert FactKind.PRICES in facts.stale(START + timedelta(minutes=76))


def test_nodes_of_selected_groups_get_both_subnet_labels_and_others_do_not():
    system = FakeSystem(
        instances=[an_instance("i-0a"), an_instance("i-0b", group="other")],
        groups=[a_group(GROUP, "i-0a"), a_group("other", "i-0b")],
        nodes=[a_node("i-0a"), a_node("i-0b")],
    )
    assert sync_once(system.ports).labelled == ["node-i-0a"]
    labels = system.kubernetes.by_name["node-i-0a"].labels
    assert (labels["leeward.dev/subnet-id"], labels["topology.cast.ai/subnet-id"]) == ("subnet-a", "subnet-a")
    assert "leeward.dev/subnet-id" not in system.kubernetes.by_name["node-i-0b"].labels


def test_a_node_that_has_its_labels_is_not_touched_again_and_ec2_is_not_asked():
    system = a_system()
    sync_once(system.ports)
    before = system.kubernetes.by_name["node-i-0a"]
    system.instances.asked.clear()
    assert sync_once(system.ports).labelled == []
    assert system.kubernetes.by_name["node-i-0a"] == before
    assert system.instances.asked["describe"] == 0


def test_a_subnet_label_that_another_owner_has_set_stays():
    node = a_node("i-0a")
    node = replace(node, labels={**node.labels, "topology.cast.ai/subnet-id": "theirs"})
    system = a_system(nodes=[node])
    sync_once(system.ports)
    labels = system.kubernetes.by_name["node-i-0a"].labels
    assert (labels["leeward.dev/subnet-id"], labels["topology.cast.ai/subnet-id"]) == ("subnet-a", "theirs")


def test_nodes_get_the_annotations_of_their_policy_once_and_other_values_are_overwritten():
    policy = replace(a_policy(), node=DesiredNode(annotations={"example.com/owner": "web"}))
    theirs = replace(a_node("i-0b"), annotations={"example.com/owner": "db", "other": "stays"})
    system = FakeSystem(
        instances=[an_instance(name) for name in ("i-0a", "i-0b", "i-0c")],
        groups=[a_group(GROUP, "i-0a", "i-0b"), a_group("other", "i-0c")],
        nodes=[a_node("i-0a"), theirs, a_node("i-0c")],
        written=policies(policy),
    )
    for _ in range(2):
        sync_once(system.ports)
    found = {name: node.annotations for name, node in system.kubernetes.by_name.items()}
    assert found["node-i-0a"] == {"example.com/owner": "web"}
    assert found["node-i-0b"] == {"example.com/owner": "web", "other": "stays"}
    assert found["node-i-0c"] == {}
    assert system.kubernetes.asked["annotate"] == 2


def test_a_node_that_cannot_be_labelled_stops_nothing():
    system = a_system()
    system.kubernetes.fail("label", ClusterUnreachableError("500"))
    synced = sync_once(system.ports)
    assert synced.warnings == ["blue: labels of node-i-0a: 500"]
    assert "blue/subnets" in synced.facts
