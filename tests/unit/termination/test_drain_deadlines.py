"""When a node has a deadline: last calls, graces that fit, what stays because it would come back, whose volumes wait.

The rules are Karpenter's terminationGracePeriod and its filters of drainable pods and volumes."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.model.attachment import VolumeAttachment
from leeward.model.group import HookResult
from leeward.model.node import Taint
from leeward.model.pod import LONGEST_GRACE_SECONDS, Owner, Pod, Toleration
from leeward.model.termination import Cause, CauseKind, DrainOptions, Status, TerminationRecord
from leeward.policy.document import DrainPolicy
from leeward.termination.deadlines import node_deadline
from leeward.termination.drain_plan import DrainTerms, PodRemoval, Protection, plan_drain, turn_times
from leeward.termination.settling import drain_volumes, held_volumes
from tests.adapters.kubernetes_objects import raw_pod
from tests.fakes.builders import a_node, a_subject
from tests.fakes.clock import START as NOW

SET = Owner(api_version="apps/v1", kind="ReplicaSet", name="web-5d4")
DAEMON_SET = Owner(api_version="apps/v1", kind="DaemonSet", name="agent")
TEN_MINUTES = DrainPolicy(termination_grace_period=timedelta(minutes=10))
NO_DEADLINE = DrainPolicy()
NO_FLAGS = DrainOptions()
EVERYTHING = (Toleration(operator="Exists"),)


def a_pod(name="web-1", **changes):
    pod = Pod(namespace="shop", name=name, uid=name, node="n", phase="Running", ready=True, owner=SET)
    return replace(pod, **changes)


def plan(*pods, policy=TEN_MINUTES, left=None, options=NO_FLAGS, daemon_sets=frozenset({"shop/agent"}), node=None):
    deadline = None if left is None else NOW + timedelta(seconds=left)
    terms = DrainTerms(policy=policy, now=NOW, deadline=deadline, options=options)
    return plan_drain(node=node or a_node(), pods=pods, budgets=(), daemon_sets=daemon_sets, terms=terms)


def only(found):
    (eviction,) = found.evict
    return eviction


@pytest.mark.parametrize(
    ("left", "how", "grace"),
    [
        (31, PodRemoval.EVICT, None),
        (30, PodRemoval.DELETE, None),  # all of its grace is left
        (29, PodRemoval.DELETE, 29),
        (0, PodRemoval.DELETE, 1),
        (-60, PodRemoval.DELETE, 1),
    ],
)
def test_a_grace_that_would_go_past_the_deadline_is_what_is_left_and_at_least_a_second(left, how, grace):
    eviction = only(plan(a_pod(grace_seconds=30), left=left))
    assert (eviction.removal, eviction.grace_seconds, eviction.due) == (how, grace, how is PodRemoval.DELETE)


def test_a_grace_of_one_call_counts_in_the_place_of_the_pods_own():
    options = DrainOptions(grace_seconds=5)
    assert only(plan(a_pod(grace_seconds=30), left=6, options=options)).removal is PodRemoval.EVICT
    late = only(plan(a_pod(grace_seconds=30), left=5, options=options))
    assert (late.removal, late.grace_seconds) == (PodRemoval.DELETE, 5)
    assert only(plan(a_pod(grace_seconds=30), left=3, options=options)).grace_seconds == 3


def test_a_last_call_comes_whatever_the_wave():
    critical = a_pod("dns", priority_class="system-cluster-critical", grace_seconds=300)
    found = plan(a_pod(grace_seconds=30), critical, left=200)
    assert [(one.pod.name, one.wave, one.due) for one in found.turn] == [("web-1", 0, False), ("dns", 1, True)]
    assert [one.pod.name for one in plan(a_pod(), critical, left=400).turn] == ["web-1"]


@pytest.mark.parametrize(("left", "leaving"), [(36, ["web-1"]), (35, ["web-1", "dns"]), (0, ["web-1", "dns"])])
def test_a_critical_pod_is_evicted_in_time_whatever_the_waves_before_it_do(left, leaving):
    """5 s before the end its grace of 30 s has to be over. The default policy deletes nothing."""
    critical = a_pod("dns", priority_class="system-cluster-critical", grace_seconds=30)
    drained = plan(a_pod(grace_seconds=120), critical, left=left, policy=DrainPolicy())
    assert [eviction.pod.name for eviction in drained.turn] == leaving
    assert {eviction.removal for eviction in drained.turn} == {PodRemoval.EVICT}


def test_each_wave_leaves_the_longest_grace_of_the_waves_after_it():
    daemon = a_pod("agent", owner=Owner(api_version="apps/v1", kind="DaemonSet", name="gone"), grace_seconds=20)
    slow, fast = (
        a_pod(name, priority_class="system-node-critical", grace_seconds=s) for name, s in (("a", 40), ("b", 5))
    )
    drained = plan(a_pod(), daemon, slow, fast, left=1000, policy=DrainPolicy())
    ends = NOW + timedelta(seconds=1000)
    assert drained.later_waves == (ends - timedelta(seconds=5 + 40 + 20), ends - timedelta(seconds=5 + 40))
    assert turn_times(drained) == drained.later_waves


@pytest.mark.parametrize("grace", [2**63 - 1, 10**12, 64 * 10**9, 0, -1, -(2**63)])
@pytest.mark.parametrize("policy", [DrainPolicy(), TEN_MINUTES, DrainPolicy(force=True)])
def test_no_grace_that_the_api_takes_ends_the_drain_of_its_neighbours(grace, policy):
    raw = raw_pod("odd") | {"spec": {"nodeName": "n", "terminationGracePeriodSeconds": grace}}
    critical = Pod.from_json(raw | {"spec": raw["spec"] | {"priorityClassName": "system-cluster-critical"}})
    drained = plan(a_pod(), Pod.from_json(raw), critical, left=110, policy=policy)
    assert "web-1" in {eviction.pod.name for eviction in drained.turn}
    assert all(0 <= pod.grace_seconds <= LONGEST_GRACE_SECONDS for pod in (critical, Pod.from_json(raw)))


def test_without_a_deadline_a_wave_waits_for_those_before_it():
    critical = a_pod("dns", priority_class="system-cluster-critical")
    drained = plan(a_pod(), critical, policy=DrainPolicy())
    assert ([eviction.pod.name for eviction in drained.turn], drained.later_waves) == (["web-1"], ())


def test_a_forced_drain_that_is_out_of_time_still_goes_wave_by_wave():
    critical = a_pod("dns", priority_class="system-cluster-critical")
    found = plan(a_pod(), critical, policy=DrainPolicy(force=True), options=DrainOptions(disable_eviction=True))
    assert {one.removal for one in found.evict} == {PodRemoval.DELETE}
    assert [one.pod.name for one in found.turn] == ["web-1"]


@given(left=st.integers(-100, 2000), grace=st.integers(0, 1000))
def test_no_pod_is_deleted_before_its_last_call_nor_given_more_than_is_left(left, grace):
    found = plan(a_pod(grace_seconds=grace), left=left)
    eviction, (call,) = only(found), turn_times(found)
    assert eviction.due == (call <= NOW)
    given_to_it = grace if eviction.grace_seconds is None else eviction.grace_seconds
    if eviction.due:
        assert given_to_it <= max(left, 1)


class TestTheNodesDeadline:
    def record(self, *causes):
        return TerminationRecord(subject=a_subject(), status=Status.OPEN, attempt=1, version=1, causes=causes)

    def cause(self, kind, minutes, **changes):
        return Cause(id=f"{kind}{minutes}", kind=kind, at=NOW, deadline=NOW + timedelta(minutes=minutes), **changes)

    def test_it_is_the_earliest_and_a_cause_can_only_tighten_it(self):
        spot, change = self.cause(CauseKind.SPOT_INTERRUPTION, 2), self.cause(CauseKind.SCHEDULED_CHANGE, 60)
        assert self.deadline(change, policy=TEN_MINUTES) == NOW + timedelta(minutes=10)
        assert self.deadline(change, spot, policy=TEN_MINUTES) == NOW + timedelta(minutes=2)
        assert self.deadline(change) == NOW + timedelta(minutes=60)
        assert self.deadline() is None

    def deadline(self, *causes, policy=NO_DEADLINE, ours_hold=False):
        return node_deadline(self.record(*causes), policy, NOW, NOW, ours_hold=ours_hold)

    def test_the_time_out_of_another_teams_hook_counts_only_where_it_ends_the_instance(self):
        """The group waits for all hooks; one that abandons stops the others, one that continues does not."""
        ours = self.cause(CauseKind.ASG_TERMINATE, 5, hook="leeward-terminate", hook_ours=True)
        continues = replace(ours, id="c", hook="other-team", hook_ours=False, hook_default=HookResult.CONTINUE)
        abandons = replace(continues, hook_default=HookResult.ABANDON)
        ends = NOW + timedelta(minutes=5)
        assert self.deadline(ours) is None
        assert self.deadline(continues) == ends
        assert self.deadline(continues, ours) is None
        assert self.deadline(continues, ours_hold=True) is None
        assert self.deadline(abandons, ours) == self.deadline(abandons, ours_hold=True) == ends


class TestPodsThatWouldComeBack:
    def test_one_that_tolerates_the_taint_is_left(self):
        found = plan(a_pod(tolerations=EVERYTHING))
        assert found.drained
        assert [left.reason for left in found.leave] == [
            "it tolerates the taint leeward.dev/disrupted: it ends with the node"
        ]

    def test_a_toleration_of_one_value_is_compared_with_the_taint_that_is_there(self):
        only_spot = (Toleration(key="leeward.dev/disrupted", value="spot_interruption"),)
        taint = Taint(key="leeward.dev/disrupted", effect="NoSchedule", value="spot_interruption")
        assert plan(a_pod(tolerations=only_spot), node=a_node(taints=(taint,))).drained
        assert not plan(a_pod(tolerations=only_spot), node=a_node(taints=(replace(taint, value="manual"),))).drained

    def test_what_the_policy_protects_is_refused_all_the_same(self):
        """It would end with the node, and its data with it."""
        careful = DrainPolicy(evict_unmanaged=False, delete_local_data=False)
        lonely, cache = a_pod("lonely", owner=None), a_pod("cache", empty_dir=True)
        tolerant = [replace(pod, tolerations=EVERYTHING) for pod in (lonely, cache)]
        assert [one.protection for one in plan(*tolerant, policy=careful).refuse] == [
            Protection.LOCAL_DATA,
            Protection.UNMANAGED,
        ]

    def test_a_daemon_pod_is_refused_where_they_are_not_ignored_though_it_tolerates_everything(self):
        daemon = a_pod("agent-1", owner=DAEMON_SET, tolerations=EVERYTHING)
        found = plan(daemon, options=DrainOptions(ignore_daemon_sets=False))
        assert [one.protection for one in found.refuse] == [Protection.DAEMON_SET]

    def test_one_without_a_controller_leaves_though_it_tolerates_everything(self):
        """kubectl drain --force: without a controller, or of a DaemonSet that does not exist."""
        for owner in (None, replace(DAEMON_SET, name="removed")):
            assert only(plan(a_pod("alone", owner=owner, tolerations=EVERYTHING))).removal is PodRemoval.EVICT

    def test_a_finished_pod_comes_back_nowhere(self):
        assert only(plan(a_pod("job", phase="Failed", tolerations=EVERYTHING))).removal is PodRemoval.EVICT


class TestVolumes:
    def lines(self, *pods, waits=True, **more):
        attachments = [
            VolumeAttachment(name=f"csi-{volume}", node=node, volume=volume, attached=True)
            for volume, node in (("pv-b", "n"), ("pv-a", "n"), ("pv-c", "other"))
        ]
        claims = {"pv-a": "shop/a", "pv-b": "shop/b", "pv-c": "shop/c"}
        found = drain_volumes(plan(*pods, **more), held_volumes("n", pods, attachments, claims), waits=waits)
        return [(one.attachment, one.pod.name if one.pod else None, one.wait) for one in found]

    def test_those_of_pods_that_leave_and_of_pods_that_have_left_are_waited_for(self):
        assert self.lines(a_pod(claims=("a",))) == [("csi-pv-a", "web-1", True), ("csi-pv-b", None, True)]

    def test_one_that_a_pod_uses_which_stays_is_not(self):
        """Karpenter leaves out what undrainable pods use: it would be waited for in vain."""
        daemon = a_pod("agent-1", owner=DAEMON_SET, claims=("a",))
        assert self.lines(daemon, a_pod(claims=("a", "b"))) == [
            ("csi-pv-a", "agent-1", False),
            ("csi-pv-a", "web-1", False),
            ("csi-pv-b", "web-1", True),
        ]

    def test_none_is_where_the_instance_is_gone(self):
        assert self.lines(a_pod(claims=("a",)), waits=False) == [
            ("csi-pv-a", "web-1", False),
            ("csi-pv-b", None, False),
        ]
