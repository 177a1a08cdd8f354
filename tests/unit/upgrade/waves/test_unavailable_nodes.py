"""Which old nodes count as unavailable beside those that start next, also once their Node objects are gone."""

from dataclasses import replace

from leeward.upgrade.waves.drain_selection import busy_nodes, starts
from tests.unit.upgrade.builders import a_node, a_pod, a_policy, an_instance, an_upgrade
from tests.unit.upgrade.waves.test_early_starts import TWO, a_record, an_ec2_instance, with_surge


def rolling(*, deleted=("d1",), orphans=("d1",), states=None):
    """Four old nodes with a pod each and two new ones; Nodes of `deleted` are gone, `orphans` still have their pod."""
    old = [a_node(f"o{number}", cordoned=True) for number in range(1, 5)]
    new = [a_node("n1"), a_node("n2")]
    members = [an_instance(node.name) for node in old]
    members += [an_instance(node.name, "a", "2") for node in new]
    members += [an_instance(name) for name in deleted]
    found = {f"i-{name}": an_ec2_instance(name) for name in deleted}
    return an_upgrade(
        *old,
        *new,
        new=("n1", "n2"),
        group={"instances": tuple(members)},
        policy=a_policy(TWO),
        pods=tuple(a_pod(f"p-{name}", name, app=name) for name in (*(node.name for node in old), *orphans)),
        instances={name: replace(one, state=(states or {}).get(name, one.state)) for name, one in found.items()},
    )


def under_way(*names):
    return a_record(under_way={f"i-{name}": f"t.{name}" for name in names}, **with_surge("n1", "n2"))


def test_an_instance_whose_node_a_person_deletes_stays_unavailable_while_its_pods_are_there():
    preflight, record = rolling(), under_way("d1")
    assert [(one.name, one.zone) for one in busy_nodes(preflight, record)] == [("i-d1", "a")]
    assert len(starts(preflight, record)) == 1  # maxUnavailable is 2


def test_an_instance_whose_node_a_person_deletes_is_terminated_once_its_pods_are_gone():
    gone, lingering = rolling(orphans=()), rolling()
    assert "i-d1" in {one.old for one in starts(gone, a_record(**with_surge("n1", "n2")))}
    assert "i-d1" not in {one.old for one in starts(lingering, a_record(**with_surge("n1", "n2")))}


def test_one_without_a_termination_request_is_unavailable_too():
    assert [one.name for one in busy_nodes(rolling(), under_way())] == ["i-d1"]


def test_once_its_pods_are_gone_it_delays_no_node():
    assert busy_nodes(rolling(orphans=()), under_way("d1")) == []


def test_a_surplus_is_unavailable_from_its_claim_on_while_it_has_pods():
    preflight = rolling(orphans=())
    both = replace(preflight, snapshot=replace(preflight.snapshot, terminating=frozenset({"i-o1", "i-n1"})))
    assert [one.name for one in busy_nodes(both, under_way())] == ["o1"]  # no pod is on n1


def test_an_instance_that_ec2_has_ended_is_unavailable_no_longer():
    assert busy_nodes(rolling(states={"i-d1": "shutting-down"}), under_way("d1")) == []


def test_pods_of_daemon_sets_do_not_keep_a_deleted_node_unavailable():
    preflight = rolling(orphans=())
    left = replace(a_pod("logs", "d1"), owner=replace(a_pod("p").owner, kind="DaemonSet"))
    preflight = replace(preflight, snapshot=replace(preflight.snapshot, pods=(*preflight.snapshot.pods, left)))
    assert busy_nodes(preflight, under_way("d1")) == []
