"""What nodes carry: rows K6, K7 and K15 of docs/features.md."""

from datetime import timedelta

import pytest

from leeward.disruption.annotations import annotation_changes, write_annotations
from leeward.errors import ThrottledError
from leeward.model.launch import LaunchSettings
from tests.fakes.builders import our_hook
from tests.fakes.kubernetes import FakeKubernetes
from tests.unit.disruption.fleet import NOON, a_fleet, a_policy, rules

EMPTY, EXPIRED, SINCE, REASONS = (
    f"leeward.dev/{name}" for name in ("empty-since", "expired", "drifted-since", "drift-reasons")
)
WEEK = a_policy(disruption=rules(expire_after=timedelta(days=7)))
EARLIER = "2026-05-01T11:00:00Z"
MARK = {"key": "leeward.dev/disrupted", "effect": "NoSchedule"}


def changes(fleet):
    return {change.node.name: change for change in annotation_changes(fleet.snapshot(), fleet.now)}


def carried(fleet, node="n1"):
    """The node's annotations once all that is asked for is written, by keys of ours that name a state."""
    client = FakeKubernetes(fleet.snapshot().nodes)
    write_annotations(changes(fleet).values(), client)
    found = client.node(node).annotations
    return {key: found[key] for key in (EMPTY, EXPIRED, SINCE, REASONS) if key in found}


# empty-since


def test_a_node_is_empty_from_the_moment_it_is_first_seen_so_and_stays_so():
    assert carried(a_fleet().node("n1").daemon("logs")) == {EMPTY: "2026-05-01T12:00:00Z"}
    assert carried(a_fleet().node("n1", annotations={EMPTY: EARLIER})) == {EMPTY: EARLIER}


def test_the_given_moment_is_written():
    later = annotation_changes(a_fleet().node("n1").snapshot(), NOON + timedelta(hours=1))
    assert later[0].set[EMPTY] == "2026-05-01T13:00:00Z"


def test_a_time_that_cannot_be_parsed_is_replaced():
    assert carried(a_fleet().node("n1", annotations={EMPTY: "yesterday"})) == {EMPTY: "2026-05-01T12:00:00Z"}


@pytest.mark.parametrize(
    "fleet",
    [
        a_fleet().node("n1", annotations={EMPTY: EARLIER}).pod("a", "n1"),
        a_fleet().node("n1", annotations={EMPTY: EARLIER}).pod("a"),
        a_fleet(a_policy(disruption=rules(consolidation_policy="Never"))).node("n1", annotations={EMPTY: EARLIER}),
        a_fleet(a_policy(disruption=rules(consolidate_after=None))).node("n1", annotations={EMPTY: EARLIER}),
        a_fleet(emptiness=False).node("n1", annotations={EMPTY: EARLIER}),
    ],
    ids=["a pod runs there", "a pod will land there", "policy Never", "consolidateAfter Never", "switched off"],
)
def test_a_node_that_is_not_empty_or_whose_emptiness_no_method_needs_is_not_annotated(fleet):
    assert carried(fleet) == {}


def test_a_node_that_is_not_ready_does_not_begin_to_be_empty_but_goes_on_being_so():
    assert carried(a_fleet().node("n1", ready=False)) == {}
    assert carried(a_fleet().node("n1", ready=False, annotations={EMPTY: EARLIER})) == {EMPTY: EARLIER}


# expired


def test_a_node_past_its_time_says_so_and_no_longer_when_expiration_is_off_or_its_time_is_longer():
    busy = a_fleet(WEEK).node("n1").pod("a", "n1")
    assert carried(busy) == {EXPIRED: "true"}
    assert carried(a_fleet(WEEK).node("n1", created="2026-04-30T00:00:00Z").pod("a", "n1")) == {}
    for fleet in (a_fleet(WEEK, expiration=False), a_fleet()):
        assert carried(fleet.node("n1", annotations={EXPIRED: "true"}).pod("a", "n1")) == {}


# drift


def test_a_drifted_node_says_since_when_and_in_what_and_no_longer_when_it_is_in_order():
    old = a_fleet().group("web", launch=LaunchSettings(image="ami-2")).node("n1", instance={"image": "ami-1"})
    assert carried(old.pod("a", "n1")) == {SINCE: "2026-05-01T12:00:00Z", REASONS: "ami"}
    said = {SINCE: EARLIER, REASONS: "ami"}
    new = a_fleet().group("web", launch=LaunchSettings(image="ami-2"))
    assert carried(new.node("n1", annotations=said, instance={"image": "ami-2"}).pod("a", "n1")) == {}


def test_hashes_of_another_version_are_replaced_and_those_of_ours_stay():
    def hashes(**annotations):
        fleet = a_fleet().group("web", launch=LaunchSettings(user_data="eA==")).node("n1", annotations=annotations)
        put = changes(fleet.pod("a", "n1")).get("n1")
        return dict(put.set) if put else {}

    new = hashes()
    old = {"leeward.dev/template-hash": "userData=0", "leeward.dev/template-hash-version": "v0"}
    assert new["leeward.dev/template-hash-version"] == "v2"
    assert hashes(**old) == new
    assert hashes(**new) == {}


# who is left alone


@pytest.mark.parametrize(
    "node",
    [
        {"taints": [MARK]},
        {"taints": [{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}]},
        {"labels": {"karpenter.sh/nodepool": "default"}},
    ],
    ids=["on its way out", "the autoscaler's", "Karpenter's"],
)
def test_terminating_nodes_and_those_of_other_owners_are_left_unchanged(node):
    assert not changes(a_fleet(WEEK).node("n1", annotations={EXPIRED: "true", EMPTY: "x"}, **node))


def test_nodes_of_a_group_that_no_policy_selects_any_more_lose_what_was_put_on_them_and_nothing_else():
    carried_before = {EMPTY: EARLIER, EXPIRED: "true", SINCE: EARLIER, REASONS: "ami", "theirs": "x"}
    fleet = a_fleet(a_policy("web", "other")).node("n1", annotations=carried_before)
    assert set(changes(fleet.having(hooks={"web": ()}))["n1"].remove) == {EMPTY, EXPIRED, SINCE, REASONS}
    assert changes(fleet.having(hooks={"web": (our_hook("web"),)})) == {}, "another deployment may select it"
    assert changes(fleet.having(hooks={})) == {}, "its hooks are not known"
    assert not changes(a_fleet(a_policy("web", "other")).node("n1").having(hooks={"web": ()}))


def test_a_pod_that_ran_since_begins_the_time_again():
    job = {"phase": "Succeeded", "started": "2026-05-01T11:20:00Z", "ended": "2026-05-01T11:25:00Z", "owner": "Job"}
    empty = a_fleet().node("n1", annotations={EMPTY: EARLIER})
    assert carried(empty.pod("job", "n1", **job)) == {EMPTY: "2026-05-01T11:25:00Z"}


def test_a_time_from_before_the_node_was_created_counts_from_its_creation():
    assert carried(a_fleet().node("n1", created="2026-05-01T11:30:00Z", annotations={EMPTY: EARLIER})) == {
        EMPTY: "2026-05-01T11:30:00Z"
    }


# writing


def test_written_twice_nothing_changes_and_nothing_is_asked_for_any_more():
    fleet = a_fleet(WEEK).node("n1").node("n2", annotations={SINCE: EARLIER, "theirs": "x"}).pod("a", "n2")
    client, wanted = FakeKubernetes(fleet.snapshot().nodes), annotation_changes(fleet.snapshot(), NOON)
    assert write_annotations(wanted, client) == 2
    once = {node.name: node for node in client.nodes()}
    assert write_annotations(wanted, client) == 2
    assert {node.name: node for node in client.nodes()} == once
    assert (once["n2"].annotations["theirs"], SINCE in once["n2"].annotations) == ("x", False)
    for raw in fleet.nodes:
        raw["metadata"]["annotations"] = once[raw["metadata"]["name"]].annotations
    assert not changes(fleet)


def test_a_node_that_is_gone_is_done_and_the_others_are_written():
    fleet = a_fleet().node("n1").node("n2")
    client = FakeKubernetes(node for node in fleet.snapshot().nodes if node.name == "n2")
    assert write_annotations(changes(fleet).values(), client) == 1
    assert EMPTY in client.node("n2").annotations


def test_when_time_is_short_the_times_that_begin_to_run_are_written_first():
    fleet = a_fleet(WEEK).node("n1").pod("a", "n1").node("n2")
    client, times = FakeKubernetes(fleet.snapshot().nodes), iter([True, False])
    assert write_annotations(changes(fleet).values(), client, lambda: next(times)) == 1
    assert (EMPTY in client.node("n2").annotations, client.node("n1").annotations) == (True, {})


def test_a_throttled_write_is_the_callers_affair():
    fleet = a_fleet().node("n1")
    client = FakeKubernetes(fleet.snapshot().nodes)
    client.fail("annotate", ThrottledError("slow down"))
    with pytest.raises(ThrottledError):
        write_annotations(changes(fleet).values(), client)
