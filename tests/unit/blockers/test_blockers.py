"""Who blocks a node and until when: one rule a test, with the source of the rule."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from leeward.blockers.blocker import BlockerKind, owner_of
from leeward.blockers.find import blockers
from leeward.blockers.inputs import NodeInputs, ProtectionOwner, drain_ends_at, waiting_hooks
from leeward.disruption.do_not_disrupt import why_pod_stays
from leeward.model.attachment import VolumeAttachment
from leeward.model.node import Taint
from leeward.model.pod import Owner, Pod, PodDisruptionBudget, Toleration
from leeward.model.termination import Cause, CauseKind, Status, TerminationRecord
from leeward.model.well_known import KEPT_FOR, SCALE_DOWN_DISABLED
from leeward.policy.document import DisruptionPolicy, DrainPolicy
from leeward.termination.drain_plan import DrainTerms, plan_drain, tolerates_disruption_taint
from leeward.termination.settling import held_volumes
from tests.fakes.builders import GROUP, a_group, a_node, a_policy, a_subject, our_hook

NOW = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)
I = "i-0abc"  # noqa: E741
NODE = a_node(I)
SET = Owner(api_version="apps/v1", kind="ReplicaSet", name="web-5d4")
DAEMON_SET = Owner(api_version="apps/v1", kind="DaemonSet", name="agent")
MINUTE = timedelta(minutes=1)


def a_pod(name="web-1", **changes):
    pod = Pod(namespace="shop", name=name, uid=name, node=NODE.name, phase="Running", ready=True, owner=SET)
    return replace(pod, labels={"app": "web", "pod-template-hash": "5d4"}, started=NOW - 60 * MINUTE, **changes)


def a_budget(allowed=0, name="web", **changes):
    selector = {"matchLabels": {"app": "web"}}
    budget = PodDisruptionBudget(namespace="shop", name=name, selector=selector, disruptions_allowed=allowed)
    return replace(budget, **changes)


def a_record(*causes, **changes):
    record = TerminationRecord(subject=a_subject(I), status=Status.OPEN, attempt=1, version=1, causes=causes)
    return replace(record, **changes)


def an_attachment(**changes):
    return replace(VolumeAttachment(name="csi-1", node=NODE.name, volume="pv-1", attached=True), **changes)


def found(*pods, budgets=(), policy=None, attachments=(), claims=None, now=NOW, **scene):
    volumes = held_volumes(NODE.name, pods, attachments, {"pv-1": "shop/data"} if claims is None else claims)
    whole = NodeInputs(
        node=scene.pop("node", NODE), pods=pods, budgets=tuple(budgets), volumes=volumes, policy=policy, **scene
    )
    return blockers(whole, now)


def drains(**changes):
    return replace(a_policy(), drain=DrainPolicy(**changes))


def kinds(*args, **more):
    return [blocker.kind for blocker in found(*args, **more)]


class TestForeignTaints:
    def test_one_that_its_controller_forgot_is_named_with_its_age_and_the_command(self):
        since = datetime(2026, 2, 6, 10, tzinfo=UTC)
        taint = Taint(key="ToBeDeletedByClusterAutoscaler", effect="NoSchedule", value=str(int(since.timestamp())))
        (blocker,) = found(node=replace(NODE, taints=(taint,)))
        assert (blocker.kind, blocker.object, blocker.owner) == (
            BlockerKind.FOREIGN_TAINT,
            "taint ToBeDeletedByClusterAutoscaler",
            "Controller/cluster-autoscaler",
        )
        assert blocker.to_json()["since"] == "2026-02-06T10:00:00Z"
        assert blocker.fix.endswith(f"kubectl taint node {NODE.name} ToBeDeletedByClusterAutoscaler-")

    def test_while_its_controller_works_on_the_node_it_is_none(self):
        since = str(int((NOW - timedelta(hours=1)).timestamp()))
        taint = Taint(key="ToBeDeletedByClusterAutoscaler", effect="NoSchedule", value=since)
        assert found(node=replace(NODE, taints=(taint,))) == ()


class TestBudgets:
    def test_a_pod_that_may_go_blocks_nothing(self):
        assert found(a_pod(), budgets=[a_budget(1)]) == ()

    def test_one_that_allows_none_now(self):
        (blocker,) = found(a_pod(), budgets=[a_budget(0, current_healthy=1, desired_healthy=1)])
        assert (blocker.kind, blocker.object, blocker.owner) == (
            BlockerKind.PDB_NONE_NOW,
            "pdb shop/web",
            "Deployment/web",
        )
        assert blocker.until is None
        assert "1 of the 1 pod " in blocker.fix

    @pytest.mark.parametrize(
        "bound",
        [
            {"max_unavailable": 0},
            {"max_unavailable": "0%"},
            {"min_available": "100%"},
            {"min_available": 3, "expected_pods": 3},
            {"min_available": 4, "expected_pods": 3},
            {"min_available": "67%", "expected_pods": 3},  # rounded up: all three
        ],
    )
    def test_one_that_can_never_allow(self, bound):
        """The disruption controller: shares are rounded up, what is healthy less what is wanted is never above zero."""
        (blocker,) = found(a_pod(), budgets=[a_budget(0, **bound)])
        assert blocker.kind is BlockerKind.PDB_NEVER
        assert "kubectl patch pdb -n shop web" in blocker.fix

    @pytest.mark.parametrize(
        "bound",
        [
            {"max_unavailable": "1%", "expected_pods": 3},  # rounded up: one
            {"min_available": 2, "expected_pods": 3},
            {"min_available": "66%", "expected_pods": 3},
            {"min_available": 3},  # the total is unknown
        ],
    )
    def test_one_that_can_allow_when_its_pods_are_healthy(self, bound):
        assert kinds(a_pod(), budgets=[a_budget(0, **bound)]) == [BlockerKind.PDB_NONE_NOW]

    def test_several_on_one_pod_whatever_they_allow(self):
        (blocker,) = found(a_pod(), budgets=[a_budget(5), a_budget(5, "also")])
        assert (blocker.kind, blocker.object) == (BlockerKind.PDB_SEVERAL, "pdb shop/also, pdb shop/web")

    def test_one_on_a_failing_pod(self):
        """policy/v1: IfHealthyBudget lets an unready pod go only where the healthy ones suffice."""
        failing = a_pod(ready=False)
        budget = a_budget(0, current_healthy=1, desired_healthy=2)
        (blocker,) = found(failing, budgets=[budget])
        assert blocker.kind is BlockerKind.PDB_FAILING_POD
        assert "AlwaysAllow" in blocker.fix
        assert found(failing, budgets=[replace(budget, always_allow_unhealthy=True)]) == ()
        assert found(failing, budgets=[replace(budget, current_healthy=2)]) == ()

    def test_until_the_pods_last_call_where_the_policy_deletes_at_a_deadline(self):
        policy = drains(termination_grace_period=timedelta(hours=1))
        pod = a_pod(grace_seconds=120)
        (blocker,) = found(pod, budgets=[a_budget(0)], policy=policy, deadline=NOW + 60 * MINUTE)
        assert blocker.until == NOW + 58 * MINUTE
        (blocker,) = found(pod, budgets=[a_budget(0)], deadline=NOW + 60 * MINUTE)
        assert blocker.until is None  # without it a deadline deletes nothing

    def test_until_the_drain_that_is_under_way_gives_up(self):
        (blocker,) = found(a_pod(), budgets=[a_budget(0)], drain_ends=NOW + 9 * MINUTE)
        assert blocker.until == NOW + 9 * MINUTE

    def test_pods_that_stay_on_the_node_are_asked_no_budget(self):
        static = a_pod("static", annotations={"kubernetes.io/config.mirror": "x"})
        daemon = a_pod("agent-1", owner=DAEMON_SET)
        scene = {"budgets": [a_budget(0)], "daemon_sets": frozenset({"shop/agent"})}
        assert found(static, daemon, **scene) == ()


class TestProtectedPods:
    def test_an_unmanaged_pod_where_the_policy_refuses(self):
        """kubectl drain without --force."""
        lonely = a_pod("lonely", owner=None)
        (blocker,) = found(lonely, policy=drains(evict_unmanaged=False))
        assert (blocker.kind, blocker.owner, blocker.object) == (
            BlockerKind.UNMANAGED_POD,
            "Pod/lonely",
            "pod shop/lonely",
        )
        assert found(lonely, policy=drains()) == ()

    def test_local_data_where_the_policy_refuses(self):
        """kubectl drain without --delete-emptydir-data."""
        cache = a_pod("cache", empty_dir=True)
        assert kinds(cache, policy=drains(delete_local_data=False)) == [BlockerKind.LOCAL_DATA]
        assert found(cache, policy=drains()) == ()


class TestPodsThatWouldComeBack:
    @pytest.mark.parametrize(
        ("toleration", "what"),
        [
            (Toleration(operator="Exists"), "toleration of every taint"),
            (
                Toleration(key="leeward.dev/disrupted", operator="Exists"),
                "toleration of the taint leeward.dev/disrupted",
            ),
        ],
    )
    def test_a_pod_that_tolerates_the_mark(self, toleration, what):
        (blocker,) = found(a_pod(tolerations=(toleration,)), budgets=[a_budget(0)])
        assert (blocker.kind, blocker.object) == (BlockerKind.TOLERATES_TAINT, what)

    @pytest.mark.parametrize(
        "toleration",
        [
            Toleration(operator="Exists", effect="NoExecute"),
            Toleration(key="karpenter.sh/disrupted", operator="Exists"),
            Toleration(key="CriticalAddonsOnly", operator="Exists"),
        ],
    )
    def test_other_tolerations_block_nothing(self, toleration):
        assert found(a_pod(tolerations=(toleration,))) == ()

    def test_pods_of_daemon_sets_tolerate_everything_and_block_nothing(self):
        daemon = a_pod("agent-1", owner=DAEMON_SET, tolerations=(Toleration(operator="Exists"),))
        assert found(daemon, daemon_sets=frozenset({"shop/agent"})) == ()


class TestPodsThatDoNotEnd:
    def test_one_past_its_grace(self):
        """Karpenter waits for a minute past the deletion deadline."""
        (blocker,) = found(a_pod(deletion=NOW - timedelta(seconds=10)))
        assert (blocker.kind, blocker.until) == (BlockerKind.STUCK_POD, NOW + timedelta(seconds=50))

    def test_one_that_a_finalizer_keeps(self):
        (blocker,) = found(a_pod(deletion=NOW - MINUTE / 2, finalizers=("team.dev/backup",)))
        assert (blocker.kind, blocker.object) == (BlockerKind.POD_FINALIZER, "finalizer team.dev/backup")

    def test_one_within_its_grace_or_not_deleted_blocks_nothing(self):
        assert found(a_pod(deletion=NOW + MINUTE, finalizers=("f",)), a_pod("web-2", finalizers=("f",))) == ()


class TestOptOuts:
    @pytest.mark.parametrize("key", ["karpenter.sh/do-not-disrupt", "leeward.dev/do-not-disrupt"])
    def test_true_holds_for_as_long_as_it_is_there_and_a_duration_from_the_pods_start(self, key):
        """Karpenter; the pod started an hour ago."""
        (blocker,) = found(a_pod(annotations={key: "true"}))
        assert (blocker.kind, blocker.until) == (BlockerKind.DO_NOT_DISRUPT, None)
        (blocker,) = found(a_pod(annotations={key: "1h30m"}))
        assert (blocker.until, blocker.object) == (NOW + 30 * MINUTE, f"annotation {key}=1h30m")
        assert found(a_pod(annotations={key: "1h"})) == ()

    @pytest.mark.parametrize("value", ["false", "yes", "", "-1h", "10"])
    def test_what_is_neither_true_nor_a_duration_is_as_if_it_were_not_there(self, value):
        assert found(a_pod(annotations={"karpenter.sh/do-not-disrupt": value})) == ()

    def test_a_duration_of_a_pod_that_has_not_started_has_not_begun(self):
        pod = replace(a_pod(phase="Pending", annotations={"karpenter.sh/do-not-disrupt": "1m"}), started=None)
        assert [blocker.until for blocker in found(pod)] == [None]

    def test_the_older_word_takes_no_duration(self):
        """Karpenter before v0.32."""
        assert kinds(a_pod(annotations={"karpenter.sh/do-not-evict": "true"})) == [BlockerKind.DO_NOT_DISRUPT]
        assert found(a_pod(annotations={"karpenter.sh/do-not-evict": "5h"})) == ()

    def test_cluster_autoscalers_word_is_not_asked_of_daemon_pods(self):
        unsafe = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
        assert kinds(a_pod(annotations=unsafe)) == [BlockerKind.SAFE_TO_EVICT]
        assert found(a_pod(annotations=unsafe, owner=DAEMON_SET), daemon_sets=frozenset({"shop/agent"})) == ()

    def test_finished_and_leaving_pods_ask_for_nothing(self):
        asks = {"karpenter.sh/do-not-disrupt": "true"}
        assert found(a_pod(annotations=asks, phase="Succeeded"), a_pod("b", annotations=asks, deletion=NOW)) == ()

    @pytest.mark.parametrize(
        "key", ["karpenter.sh/do-not-disrupt", "karpenter.sh/do-not-evict", "leeward.dev/do-not-disrupt"]
    )
    @pytest.mark.parametrize("value", ["true", "false", "1h", "61m", "0", "x"])
    @pytest.mark.parametrize("started", [NOW - 60 * MINUTE, None])
    def test_the_disruption_planner_says_the_same(self, key, value, started):
        pod = replace(a_pod(annotations={key: value}), started=started)
        assert bool(found(pod)) == bool(why_pod_stays(pod, NOW))

    @pytest.mark.parametrize(
        ("key", "kind"),
        [
            ("karpenter.sh/do-not-disrupt", BlockerKind.NODE_DO_NOT_DISRUPT),
            ("karpenter.sh/do-not-consolidate", BlockerKind.NODE_DO_NOT_CONSOLIDATE),
            ("cluster-autoscaler.kubernetes.io/scale-down-disabled", BlockerKind.NODE_SCALE_DOWN_DISABLED),
        ],
    )
    def test_a_node_may_ask_itself(self, key, kind):
        (blocker,) = found(node=replace(NODE, annotations={key: "true"}), group=GROUP)
        assert (blocker.kind, blocker.pod, blocker.owner) == (kind, None, f"AutoScalingGroup/{GROUP}")
        assert blocker.fix.endswith(f"kubectl annotate node {NODE.name} {key}-")

    def test_a_policy_may_ask_for_its_whole_group(self):
        policy = replace(a_policy(), disruption=DisruptionPolicy(do_not_disrupt=True))
        assert [(one.kind, one.owner) for one in found(policy=policy)] == [
            (BlockerKind.POLICY_DO_NOT_DISRUPT, "NodePolicy/web")
        ]


class TestPodsBeyondLimits:
    PARSED = Pod.from_json(
        {
            "metadata": {"namespace": "shop", "name": "web-1"},
            "spec": {"nodeName": NODE.name, "tolerations": [{"key": f"k{n}", "operator": "Exists"} for n in range(65)]},
            "status": {"phase": "Running"},
        }
    )

    def test_such_a_pod_blocks_plans_and_no_drain(self):
        pod = a_pod(beyond_limit=self.PARSED.beyond_limit, tolerations=self.PARSED.tolerations)
        (blocker,) = found(pod)
        assert (blocker.kind, blocker.pod, blocker.until) == (BlockerKind.BEYOND_LIMITS, "shop/web-1", None)
        assert blocker.object == "65 tolerations, more than the 64 that planning reads"
        terms = DrainTerms(policy=DrainPolicy(), now=NOW)
        plan = plan_drain(node=NODE, pods=(pod,), budgets=(), daemon_sets=frozenset(), terms=terms)
        assert [one.pod.key for one in plan.evict] == ["shop/web-1"]

    @pytest.mark.parametrize("one", [{"operator": "Exists"}, {"key": "leeward.dev/disrupted", "operator": "Exists"}])
    def test_a_toleration_of_the_drain_is_found_among_thousands(self, one):
        many = [{"key": f"k{n}", "operator": "Exists"} for n in range(5_000)]
        spec = {"nodeName": NODE.name, "tolerations": [*many, one]}
        pod = Pod.from_json({"metadata": {"namespace": "shop", "name": "web-1"}, "spec": spec})
        assert tolerates_disruption_taint(replace(pod, owner=SET), NODE)
        assert len(pod.tolerations) == 1

    def test_a_daemon_pod_moves_nowhere_anyway(self):
        assert kinds(a_pod(beyond_limit=self.PARSED.beyond_limit, owner=DAEMON_SET)) == []


class TestProtectionOwners:
    """A new node of an upgrade or a run carries Cluster Autoscaler's annotation, and beside it whose it is."""

    KEPT = replace(NODE, annotations={SCALE_DOWN_DISABLED: "true", KEPT_FOR: "web"})

    def kept(self, **known):
        (blocker,) = found(node=self.KEPT, protection_owner=ProtectionOwner(name="web", **known))
        assert (blocker.kind, blocker.owner) == (BlockerKind.NODE_SCALE_DOWN_DISABLED, "Upgrade/web")
        assert blocker.object == f"annotation {SCALE_DOWN_DISABLED}=true, for the upgrade of web"
        return blocker.until, blocker.fix

    def test_one_that_runs_is_named_with_its_execution_and_its_estimated_end(self):
        ends = NOW + 9 * MINUTE
        until, fix = self.kept(execution="web-3", phase="scaling-up", until=ends)
        assert until == ends
        assert "execution web-3 is scaling-up" in fix
        assert "kubectl" not in fix  # taken off manually it would be put on again

    def test_one_that_is_paused_has_no_end_and_says_how_it_gets_one(self):
        until, fix = self.kept(execution="web-3", phase="paused")
        assert until is None
        assert "leeward upgrade resume web lets it go on" in fix

    def test_one_that_waits_for_its_window_says_where_to_look(self):
        until, fix = self.kept(execution="web-3", phase="waiting")
        assert until is None
        assert "leeward upgrade status web" in fix
        assert "resume" not in fix

    def test_one_without_an_execution_is_reconciled_and_may_be_taken_off_manually(self):
        until, fix = self.kept(execution="", until=NOW + MINUTE)
        assert until == NOW + MINUTE
        assert fix.endswith(f"manually: kubectl annotate node {NODE.name} {SCALE_DOWN_DISABLED}- {KEPT_FOR}-")

    def test_of_one_that_is_only_known_by_name_the_command_shows_more(self):
        until, fix = self.kept()
        assert until is None
        assert "leeward upgrade status web --cluster NAME" in fix

    @pytest.mark.parametrize(
        ("known", "fix"),
        [
            ({"execution": "blue-7-1"}, "execution blue-7-1 waits for the new nodes to be Ready"),
            (
                {"execution": "blue-7-1", "terminating": ("node-a", "node-b")},
                "waits until node-a, node-b are gone (leeward blockers node-a, leeward blockers node-b says what holds",
            ),
            ({}, "leeward blockers --cluster NAME shows what it waits for"),
            ({"execution": "", "until": NOW + MINUTE}, "the minute reconciler removes it"),
        ],
    )
    def test_a_round_is_named_with_what_it_waits_for(self, known, fix):
        (blocker,) = found(node=self.KEPT, protection_owner=ProtectionOwner(name="disruption:7", **known))
        assert (blocker.kind, blocker.owner) == (BlockerKind.NODE_SCALE_DOWN_DISABLED, "Disruption/7")
        assert blocker.object == f"annotation {SCALE_DOWN_DISABLED}=true, for disruption run 7"
        assert blocker.until == known.get("until")
        assert fix in blocker.fix

    def test_what_another_owner_has_put_on_is_the_groups(self):
        theirs = replace(NODE, annotations={SCALE_DOWN_DISABLED: "true"})
        (blocker,) = found(node=theirs, group=GROUP)
        assert blocker.owner == f"AutoScalingGroup/{GROUP}"
        assert f"kubectl annotate node {NODE.name} {SCALE_DOWN_DISABLED}-" in blocker.fix


class TestVolumes:
    def test_one_whose_pod_is_gone(self):
        (blocker,) = found(attachments=[an_attachment()], detaching_since=NOW - MINUTE)
        assert (blocker.kind, blocker.object) == (BlockerKind.VOLUME_ATTACHED, "volumeattachment csi-1")
        assert (blocker.pod, blocker.owner) == (None, "PersistentVolumeClaim/data")
        assert blocker.until == NOW + 5 * MINUTE  # drain.volumeDetachTimeout: six minutes from the end of the drain

    def test_one_that_is_being_detached_names_who_waits_for_it(self):
        waiting = a_pod("db-0", owner=Owner(api_version="apps/v1", kind="StatefulSet", name="db"), claims=("data",))
        attachment = an_attachment(deletion=NOW - 2 * MINUTE, error="device is busy")
        (blocker,) = found(attachments=[attachment], pods_elsewhere=(replace(waiting, node=""),))
        assert (blocker.pod, blocker.owner) == ("shop/db-0", "StatefulSet/db")
        assert blocker.until == NOW + 4 * MINUTE
        assert "device is busy" in blocker.fix

    def test_one_in_use_blocks_nothing_but_one_of_a_finished_pod_does(self):
        user = a_pod(claims=("data",))
        assert found(user, attachments=[an_attachment()]) == ()
        assert kinds(replace(user, phase="Succeeded"), attachments=[an_attachment()]) == [BlockerKind.VOLUME_ATTACHED]

    def test_one_without_an_owner_is_not_held_against_a_node_whose_pods_have_volumes(self):
        assert found(a_pod(claims=("data",)), attachments=[an_attachment()], claims={}) == ()
        assert kinds(a_pod(), attachments=[an_attachment()], claims={}) == [BlockerKind.VOLUME_ATTACHED]

    def test_those_of_other_nodes_and_those_not_attached_yet_block_nothing(self):
        assert found(attachments=[an_attachment(node="other"), an_attachment(attached=False)]) == ()


class TestHooks:
    def waiting(self, record=None, lifecycle="Terminating:Wait"):
        group = a_group(GROUP, I, lifecycle=lifecycle)
        ours, launch = our_hook(), our_hook(transition="autoscaling:EC2_INSTANCE_LAUNCHING")
        foreign = replace(our_hook(heartbeat_timeout=60), name="other-team", metadata=None)
        return waiting_hooks([ours, launch, foreign], group, I, record, frozenset({ours.name}), NOW)

    def test_a_hook_runs_out_its_time_out_after_its_last_heartbeat(self):
        cause = Cause(
            id="e", kind=CauseKind.ASG_TERMINATE, at=NOW - 20 * MINUTE, hook="leeward-terminate", hook_ours=True
        )
        record = a_record(cause, heartbeats={"leeward-terminate": NOW - MINUTE})
        ours, foreign = found(hooks=self.waiting(record))
        assert (ours.object, ours.until) == (f"hook {GROUP}/leeward-terminate", NOW + 4 * MINUTE)
        assert (foreign.object, foreign.until) == (f"hook {GROUP}/other-team", NOW + MINUTE)
        assert "not ours" in foreign.fix
        assert f"--instance-id {I}" in ours.fix

    def test_before_the_first_heartbeat_it_counts_from_its_announcement(self):
        cause = Cause(
            id="e", kind=CauseKind.ASG_TERMINATE, at=NOW - 3 * MINUTE, hook="leeward-terminate", hook_ours=True
        )
        assert self.waiting(a_record(cause))[0].until == NOW + 2 * MINUTE

    def test_no_heartbeat_keeps_it_beyond_a_hundred_time_outs(self):
        """Auto Scaling's global time-out: the smaller of 48 hours and a hundred times HeartbeatTimeout."""
        announced = NOW - timedelta(seconds=300 * 100 - 10)
        cause = Cause(id="e", kind=CauseKind.ASG_TERMINATE, at=announced, hook="leeward-terminate", hook_ours=True)
        record = a_record(cause, heartbeats={"leeward-terminate": NOW})
        assert self.waiting(record)[0].until == NOW + timedelta(seconds=10)

    def test_where_its_begin_is_unknown_its_end_is_said_to_be_the_latest(self):
        assert "at the latest" in found(hooks=self.waiting())[0].fix

    def test_an_instance_that_does_not_wait_is_held_by_no_hook(self):
        assert self.waiting(lifecycle="Terminating") == ()
        assert self.waiting(lifecycle="InService") == ()


def test_the_drain_under_way_gives_up_at_its_time_out_or_when_ec2_takes_the_instance():
    policy = drains(timeout=15 * MINUTE)
    begun = a_record(times={"draining": NOW})
    assert drain_ends_at(begun, policy, NOW) == NOW + 15 * MINUTE
    warning = Cause(id="e", kind=CauseKind.SPOT_INTERRUPTION, at=NOW, deadline=NOW + 2 * MINUTE)
    assert drain_ends_at(replace(begun, causes=(warning,)), policy, NOW) == NOW + timedelta(seconds=115)
    assert drain_ends_at(None, policy, NOW) is None
    assert drain_ends_at(replace(begun, status=Status.CLOSED), policy, NOW) is None


def test_a_replica_set_of_a_deployment_is_known_by_its_hash():
    assert owner_of(a_pod()) == "Deployment/web"
    assert owner_of(replace(a_pod(), labels={})) == "ReplicaSet/web-5d4"
    assert owner_of(a_pod(annotations={"kubernetes.io/config.mirror": "x"})) == f"Node/{NODE.name}"


def test_pods_of_an_instance_that_has_ended_block_nothing_but_its_volumes_do():
    pod = a_pod(claims=("other",), annotations={"karpenter.sh/do-not-disrupt": "true"})
    assert kinds(pod, budgets=[a_budget(0)], attachments=[an_attachment()], instance_ended=True) == [
        BlockerKind.VOLUME_ATTACHED
    ]


def test_the_list_does_not_depend_on_the_order_of_pods():
    pods = [a_pod(name, annotations={"karpenter.sh/do-not-disrupt": "true"}) for name in ("c", "a", "b")]
    assert found(*pods, budgets=[a_budget(0)]) == found(*reversed(pods), budgets=[a_budget(0)])


WEBHOOK = 'webhook guard.example.com fails: failed calling webhook "guard.example.com": connection refused'


class TestWhatADrainHasRunInto:
    def one(self, line, **scene):
        (blocker,) = found(a_pod(), blocked_by=(f"shop/web-1: {line}",), **scene)
        return blocker

    def test_a_dead_webhook_is_named_with_the_way_out(self):
        blocker = self.one(WEBHOOK, drain_ends=NOW + 15 * MINUTE)
        assert (blocker.kind, blocker.object) == (BlockerKind.WEBHOOK, "webhook guard.example.com")
        assert (blocker.pod, blocker.owner) == ("shop/web-1", "Webhook/guard.example.com")
        assert blocker.until == NOW + 15 * MINUTE
        assert "connection refused" in blocker.fix
        assert "failurePolicy: Ignore" in blocker.fix
        assert "validatingwebhookconfigurations" in blocker.fix

    def test_a_webhook_that_denies_is_distinguished_from_one_that_fails(self):
        blocker = self.one("webhook guard.example.com denies it: not during business hours")
        assert "denies its eviction (not during business hours)" in blocker.fix

    def test_a_policy_is_named(self):
        blocker = self.one("policy keep denies it: ValidatingAdmissionPolicy 'keep' denied it")
        assert (blocker.kind, blocker.object) == (BlockerKind.ADMISSION_POLICY, "validatingadmissionpolicy keep")
        assert "kubectl get validatingadmissionpolicy keep" in blocker.fix

    def test_another_failure_is_reported_as_the_server_says_it(self):
        blocker = self.one("eviction fails: etcd is away (HTTP 500)")
        assert (blocker.kind, blocker.owner) == (BlockerKind.EVICTION_FAILS, "Deployment/web")
        assert "etcd is away (HTTP 500)" in blocker.fix

    def test_budgets_and_pods_that_are_leaving_or_gone_are_not_reported_twice(self):
        lines = ("shop/web-1: pdb shop/web (allows 0 now)", f"shop/web-2: {WEBHOOK}", f"shop/gone: {WEBHOOK}")
        leaving = a_pod("web-2", deletion=NOW + MINUTE)
        assert [one.kind for one in found(a_pod(), leaving, budgets=[a_budget()], blocked_by=lines)] == [
            BlockerKind.PDB_NONE_NOW
        ]


FAILED = {
    "metadata": {"namespace": "shop", "name": "web", "generation": 1},
    "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    "status": {
        "observedGeneration": 1,
        "disruptionsAllowed": 0,
        "conditions": [{"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": "no scale"}],
    },
}


def test_a_budget_that_cannot_be_computed_is_said_to_be_so_and_gets_a_bound_that_can():
    (blocker,) = found(a_pod(), budgets=[PodDisruptionBudget.from_json(FAILED)])
    assert (blocker.kind, "no scale" in blocker.fix) == (BlockerKind.PDB_SYNC_FAILED, True)
    assert '{"spec":{"maxUnavailable":null,"minAvailable":1}}' in blocker.fix


@pytest.mark.parametrize(("observed", "blocks"), [(1, True), (2, False), (3, False)])
def test_a_status_of_an_earlier_generation_allows_nothing(observed, blocks):
    raw = FAILED | {
        "metadata": FAILED["metadata"] | {"generation": 2},
        "status": {"observedGeneration": observed, "disruptionsAllowed": 1, "currentHealthy": 3, "desiredHealthy": 2},
    }
    assert bool(found(a_pod(), budgets=[PodDisruptionBudget.from_json(raw)])) is blocks
