"""Which old nodes may go while their successors boot: those whose pods fit on the new nodes that are Ready."""

from hypothesis import given
from hypothesis import strategies as st

from leeward.scheduling.nodes import NodeSpec
from leeward.scheduling.pods import PodReader
from leeward.time_budget import SearchTime, TimeBudget
from leeward.upgrade.waves.drain_selection import PodCapacity
from tests.fakes.running_clock import RunningClock


def a_spec(name, *, most=29, zone="a", cordoned=False):
    return NodeSpec.from_json(
        {
            "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone}},
            "spec": {"unschedulable": cordoned},
            "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": str(most)}},
        }
    )


def some_pods(node, count, *, leaving=False, selector=None):
    reader = PodReader()
    meta = {"namespace": "shop", "labels": {"app": "web"}} | ({"deletionTimestamp": "later"} if leaving else {})
    spec = {"containers": [{"name": "main"}], "nodeSelector": selector or {}} | ({"nodeName": node} if node else {})
    names = (f"{node or 'pending'}-{'old-' if leaving else ''}{number}" for number in range(count))
    return [reader.read({"metadata": {**meta, "name": name}, "spec": spec}) for name in names]


def a_room(nodes, *pods):
    return PodCapacity(nodes=tuple(nodes), pods=tuple(pod for found in pods for pod in found))


def test_a_node_may_drain_early_when_its_pods_fit_on_the_new_nodes():
    room = a_room([a_spec("old"), a_spec("new")], some_pods("old", 20), some_pods("new", 9))
    assert room.fitting({"new"}, (), ("old",)) == ("old",)


def test_one_pod_too_many_keeps_it():
    room = a_room([a_spec("old"), a_spec("new")], some_pods("old", 20), some_pods("new", 10))
    assert room.fitting({"new"}, (), ("old",)) == ()


def test_a_node_that_is_not_reached_in_time_waits_for_its_successor():
    room = a_room([a_spec("old", most=110), a_spec("new", most=110)], some_pods("old", 100))
    assert room.fitting({"new"}, (), ("old",), SearchTime(TimeBudget.of(RunningClock(), 100))) == ("old",)
    assert room.fitting({"new"}, (), ("old",), SearchTime(TimeBudget.of(RunningClock(), 0))) == ()


def test_a_draining_pod_beyond_the_limits_of_planning_holds_up_no_other_node():
    raw = {
        "metadata": {"namespace": "shop", "name": "hostile"},
        "spec": {"nodeName": "draining", "tolerations": [{"key": f"k{n}", "operator": "Exists"} for n in range(65)]},
    }
    nodes = [a_spec("old"), a_spec("draining"), a_spec("new")]
    room = a_room(nodes, some_pods("old", 2), [PodReader().read(raw)])
    assert room.fitting({"new"}, ("draining",), ("old",)) == ("old",)


def test_each_takes_what_those_before_it_have_left():
    nodes = [a_spec(name) for name in ("a", "b", "c", "new")]
    room = a_room(nodes, some_pods("a", 12), some_pods("b", 20), some_pods("c", 17))
    assert room.fitting({"new"}, (), ("a", "b", "c")) == ("a", "c")
    assert room.fitting({"new"}, (), ("b", "a", "c")) == ("b",)


def test_pods_that_still_have_to_leave_draining_nodes_come_first():
    nodes = [a_spec(name) for name in ("draining", "old", "new")]
    room = a_room(nodes, some_pods("draining", 15), some_pods("old", 15))
    assert room.fitting({"new"}, ("draining",), ("old",)) == ()
    assert room.fitting({"new"}, (), ("old",)) == ("old",)


def test_pods_that_stop_have_their_successors_and_need_no_place_any_more():
    nodes = [a_spec(name) for name in ("draining", "old", "new")]
    room = a_room(nodes, some_pods("draining", 15, leaving=True), some_pods("new", 9), some_pods("old", 20))
    assert room.fitting({"new"}, ("draining",), ("old",)) == ("old",)


def test_pods_that_wait_for_a_place_come_first():
    nodes = [a_spec("old"), a_spec("new")]
    assert a_room(nodes, some_pods("", 10), some_pods("old", 20)).fitting({"new"}, (), ("old",)) == ()
    assert a_room(nodes, some_pods("", 9), some_pods("old", 20)).fitting({"new"}, (), ("old",)) == ("old",)


def test_pods_that_fit_nowhere_anyhow_delay_no_node():
    strange = some_pods("", 3, selector={"gpu": "yes"})
    assert a_room([a_spec("old"), a_spec("new")], strange, some_pods("old", 20)).fitting({"new"}, (), ("old",)) == (
        "old",
    )


def test_only_new_nodes_count_as_capacity():
    room = a_room([a_spec("old"), a_spec("elsewhere"), a_spec("new", most=5)], some_pods("old", 20))
    assert room.fitting({"new"}, (), ("old",)) == ()


def test_where_a_pod_may_run_is_respected():
    bound = some_pods("old", 1, selector={"topology.kubernetes.io/zone": "a"})
    assert a_room([a_spec("old"), a_spec("new", zone="b")], bound).fitting({"new"}, (), ("old",)) == ()
    assert a_room([a_spec("old"), a_spec("new", zone="a")], bound).fitting({"new"}, (), ("old",)) == ("old",)


def test_a_node_that_has_gone_meanwhile_is_left_out():
    room = a_room([a_spec("old"), a_spec("new")], some_pods("old", 1))
    assert room.fitting({"new"}, ("gone",), ("gone", "old")) == ("old",)


@given(
    st.lists(st.integers(0, 12), max_size=6),
    st.lists(st.integers(0, 12), max_size=3),
    st.lists(st.tuples(st.integers(0, 29), st.integers(0, 20)), max_size=4),
    st.integers(0, 10),
)
def test_there_is_a_place_for_every_pod_of_nodes_that_may_drain(old, draining, new, pending):
    """Counted anew: equal pods, so that the number of places decides; who is refused would not have fitted as well."""
    nodes = [a_spec(f"old-{n}") for n in range(len(old))] + [a_spec(f"draining-{n}") for n in range(len(draining))]
    nodes += [a_spec(f"new-{n}", most=most) for n, (most, _) in enumerate(new)]
    taken = [min(most, used) for most, used in new]
    room = a_room(
        nodes,
        some_pods("", pending),
        *(some_pods(f"old-{n}", count) for n, count in enumerate(old)),
        *(some_pods(f"draining-{n}", count) for n, count in enumerate(draining)),
        *(some_pods(f"new-{n}", count) for n, count in enumerate(taken)),
    )
    names = [f"old-{n}" for n in range(len(old))]
    going = [f"draining-{n}" for n in range(len(draining))]
    found = room.fitting({f"new-{n}" for n in range(len(new))}, going, names)
    places = sum(most for most, _ in new) - sum(taken) - sum(draining)
    if places < 0:
        assert found == ()
        return
    places = max(places - pending, 0)
    expected = []
    for name, count in zip(names, old, strict=True):
        if count <= places:
            expected.append(name)
            places -= count
    assert found == tuple(expected)
