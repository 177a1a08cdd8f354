"""What holds a node beside its pods, in the running machine: load balancers before the first eviction (X5), volumes and
addresses after the last one (X6), a second replica in between (X7)."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.errors import AccessDeniedError, AwsUnavailableError, AwsUnreachableError, ThrottledError
from leeward.model import well_known
from leeward.model.attachment import VolumeAttachment
from leeward.model.load_balancing import LoadBalancerTarget, TargetKind
from leeward.model.pod import Deployment, Owner
from leeward.model.termination import CauseKind
from leeward.policy.document import DrainPolicy
from leeward.ports.kubernetes import Listed
from leeward.termination.drain import STEPS
from leeward.termination.run import Next, Run
from tests.fakes.builders import GROUP, a_group, our_hook
from tests.fakes.clock import START
from tests.state_machines.test_walks import I, a_budget, a_pod, a_system, claim, ended, spot
from tests.state_machines.walker import Walker

NODE = f"node-{I}"
SURGE = DrainPolicy(surge_single_replicas=True, settle=timedelta(0))
QUICK = DrainPolicy(settle=timedelta(0))
SOLO = Deployment(
    namespace="shop", name="web", resource_version="1", replicas=1, available=1, settled=True, recreate=False
)
IN_A_SET = Owner(api_version="apps/v1", kind="ReplicaSet", name="web-5d4")


def a_target(state="healthy", *, kind=TargetKind.INSTANCE, id_=I):
    return LoadBalancerTarget(group="k8s-shop-web", kind=kind, id=id_, port=30080, state=state)


def each_second(system, look):
    """A `before` for the walker that sees the world at every state and in every second of a pause."""
    return Walker(system, before=lambda *_: look(system.clock.now() - START))


def attach(system, volume="pv-1", claim_name="data"):
    """A volume at the node, bound to a claim of the shop."""
    attachment = VolumeAttachment(name=f"csi-{volume}", node=NODE, volume=volume, attached=True)
    system.kubernetes.attachment_list.append(attachment)
    reference = {"namespace": "shop", "name": claim_name}
    system.kubernetes.volume_list.append({"metadata": {"name": volume}, "spec": {"claimRef": reference}})
    return attachment


def change_instance(system, **changes):
    system.instances.put(replace(system.instances.describe([I])[I], **changes))


def reported(system, reason):
    return [event.message for event in system.kubernetes.events if event.reason == reason]


class TestLoadBalancers:
    def test_the_first_pod_leaves_only_when_no_target_of_the_node_is_left(self):
        system = a_system(pods=[a_pod()])
        system.load_balancers.registered = [a_target()]
        claim(system, CauseKind.MANUAL)
        evicted_at = []

        def look(passed):
            node = system.kubernetes.by_name.get(NODE)
            if node is not None and well_known.EXCLUDE_LABEL in node.labels and passed > timedelta(seconds=20):
                system.load_balancers.registered = [a_target("draining")] if passed < timedelta(seconds=70) else []
            if system.kubernetes.done:
                evicted_at.append(passed)

        assert each_second(system, look).run(I).ended == "Terminated"
        assert timedelta(seconds=70) <= evicted_at[0] <= timedelta(seconds=110)
        (message,) = reported(system, "AwaitingDeregistration")
        assert message == "target i-0abc:30080 of k8s-shop-web (healthy), until 2026-03-02T10:05:00Z"

    def test_a_target_that_is_not_deregistered_holds_the_pods_for_the_policys_time_and_no_longer(self):
        system = a_system(pods=[a_pod()], drain=DrainPolicy(deregistration_timeout=timedelta(minutes=2)))
        system.load_balancers.registered = [a_target()]
        claim(system, CauseKind.MANUAL)
        seen = []
        each_second(system, lambda passed: system.kubernetes.done or seen.append(passed)).run(I)
        assert seen[-1] == timedelta(minutes=2)
        assert system.claims.records[I].times["evicting"] == START + timedelta(minutes=2)
        assert system.claims.records[I].outcome.value == "terminated"

    def test_it_never_takes_more_than_half_of_the_drains_time(self):
        drain = DrainPolicy(timeout=timedelta(minutes=4), deregistration_timeout=timedelta(minutes=5))
        system = a_system(pods=[a_pod()], drain=drain)
        system.load_balancers.registered = [a_target()]
        claim(system, CauseKind.MANUAL)
        assert Walker(system).run(I).ended == "Terminated"
        assert system.claims.records[I].times["evicting"] == START + timedelta(minutes=2)

    def test_a_spot_instance_is_out_of_load_balancers_and_evicted_at_once(self):
        system = a_system(pods=[a_pod()])
        system.load_balancers.registered = [a_target()]
        spot(system)
        labels = []
        each_second(
            system,
            lambda _: labels.append(NODE in system.kubernetes.by_name and system.kubernetes.by_name[NODE].labels),
        ).run(I)
        assert any(found and found.get(well_known.EXCLUDE_LABEL) == "true" for found in labels)
        assert system.claims.records[I].times["evicting"] == START
        assert system.load_balancers.asked["targets"] <= 1  # of addresses, once the pods are gone

    def test_a_spot_warning_that_joins_ends_the_wait(self):
        system = a_system(pods=[a_pod()])
        system.load_balancers.registered = [a_target()]
        claim(system, CauseKind.MANUAL)

        def look(passed):
            if passed >= timedelta(seconds=30) and system.claims.records[I].version == 1:
                joined = claim(
                    system, CauseKind.SPOT_INTERRUPTION, deadline=START + timedelta(seconds=150), id_="event-2"
                )
                system.ports.executions.wake(joined.token or "")

        each_second(system, look).run(I)
        assert system.claims.records[I].times["evicting"] <= START + timedelta(seconds=32)
        assert system.kubernetes.done == ["evict shop/web-1"]

    def test_targets_of_other_instances_and_of_pods_hold_nothing_back_before_the_eviction(self):
        """A pod's own target goes when the pod is asked to end: waiting for it before would never end."""
        system = a_system(pods=[a_pod()])
        change_instance(system, networks=("10.0.0.7", "10.0.1.0/28"))
        system.load_balancers.registered = [
            a_target(id_="i-0other"),
            a_target(kind=TargetKind.IP, id_="10.0.0.7"),
            a_target(kind=TargetKind.IP, id_="10.0.1.9"),
        ]
        claim(system, CauseKind.MANUAL)
        assert Walker(system).run(I).ended == "Terminated"
        assert system.claims.records[I].times["evicting"] == START

    def test_an_address_that_is_still_draining_holds_the_empty_node(self):
        """No other pod may get the address while requests are sent to it."""
        system = a_system(pods=[a_pod()], drain=QUICK)
        change_instance(system, networks=("10.0.1.0/28",))
        gone_at = START + timedelta(seconds=90)
        system.load_balancers.registered = [a_target("draining", kind=TargetKind.IP, id_="10.0.1.9")]

        def look(_):
            if system.clock.now() >= gone_at:
                system.load_balancers.registered = []

        claim(system, CauseKind.MANUAL)
        assert each_second(system, look).run(I).ended == "Terminated"
        assert system.claims.records[I].times["terminating"] >= gone_at
        assert reported(system, "AwaitingDeregistration")[0].startswith(
            "target 10.0.1.9:30080 of k8s-shop-web (draining)"
        )

    @pytest.mark.parametrize(
        ("services", "group", "targets", "settles"),
        [
            ([], {}, [], 0),
            ([{"type": "ClusterIP"}], {}, [], 0),
            ([{"type": "NodePort", "ports": [{"nodePort": 30080}]}], {}, [], 60),
            ([], {"balancers": ("arn:web",)}, [], 60),
            ([], {}, [TargetKind.INSTANCE], 60),
        ],
    )
    def test_an_empty_node_settles_by_itself_only_where_a_load_balancer_can_target_it(
        self, services, group, targets, settles
    ):
        drain = DrainPolicy(settle=None, deregistration_timeout=timedelta(0))
        system = a_system(pods=[a_pod()], drain=drain, group=replace(a_group(GROUP, I), **group))
        system.kubernetes.raw[Listed.SERVICES] = [
            {"metadata": {"namespace": "shop", "name": f"web-{number}"}, "spec": spec}
            for number, spec in enumerate(services)
        ]
        system.load_balancers.registered = [a_target(kind=kind) for kind in targets]
        claim(system, CauseKind.MANUAL)
        assert Walker(system).run(I).ended == "Terminated"
        times = system.claims.records[I].times
        assert (times["terminating"] - times["drained"]).total_seconds() == pytest.approx(settles, abs=5)

    @pytest.mark.parametrize("error", [ThrottledError("rate exceeded"), AwsUnavailableError("no answer")])
    def test_load_balancers_that_do_not_answer_are_asked_until_the_time_is_over(self, error):
        system = a_system(pods=[a_pod()])
        system.load_balancers.fail("targets", error)
        claim(system, CauseKind.MANUAL)
        assert Walker(system).run(I).ended == "Terminated"
        assert system.claims.records[I].times["evicting"] == START + timedelta(minutes=5)
        assert "the load balancers do not answer" in reported(system, "AwaitingDeregistration")[0]

    def test_an_api_that_is_not_reached_holds_a_drain_up_for_half_a_minute_and_the_endpoint_is_named(self):
        system = a_system(pods=[a_pod()])
        system.load_balancers.fail("targets", AwsUnreachableError("connect timeout on elasticloadbalancing"))
        claim(system, CauseKind.MANUAL)
        assert Walker(system).run(I).ended == "Terminated"
        times = system.claims.records[I].times
        assert START < times["evicting"] <= START + timedelta(seconds=60)
        assert times["terminating"] - times["evicting"] < timedelta(minutes=2)  # the pods, and the settle time
        notice = reported(system, "DeregistrationNotAwaited")[0]
        assert "connect timeout" in notice
        assert "interface endpoint for elasticloadbalancing" in notice

    def test_an_api_that_is_reached_again_is_waited_for(self):
        system = a_system(pods=[a_pod()])
        system.load_balancers.fail("targets", AwsUnreachableError("connection reset"), times=1)
        system.load_balancers.registered = [a_target()]
        gone_at = START + timedelta(seconds=90)

        def look(_):
            if system.clock.now() >= gone_at:
                system.load_balancers.registered = []

        claim(system, CauseKind.MANUAL)
        assert each_second(system, look).run(I).ended == "Terminated"
        assert system.claims.records[I].times["evicting"] >= gone_at
        assert reported(system, "DeregistrationNotAwaited") == []

    def test_a_missing_permission_is_reported_and_holds_nothing_up(self):
        system = a_system(pods=[a_pod()])
        system.load_balancers.fail("targets", AccessDeniedError("elasticloadbalancing:DescribeTargetGroups"))
        claim(system, CauseKind.MANUAL)
        assert Walker(system).run(I).ended == "Terminated"
        assert system.claims.records[I].times["evicting"] == START
        assert "DescribeTargetGroups" in reported(system, "DeregistrationNotAwaited")[0]

    def test_without_a_time_out_nothing_is_asked(self):
        system = a_system(pods=[a_pod()], drain=DrainPolicy(deregistration_timeout=timedelta(0)))
        claim(system, CauseKind.MANUAL)
        Walker(system).run(I)
        assert system.load_balancers.asked["targets"] == 0

    def test_a_node_that_is_returned_serves_load_balancers_again(self):
        """The Node Termination Handler's label stayed for ever: its check was the wrong way round."""
        system = a_system(pods=[a_pod()], budgets=[a_budget(0)])
        claim(system, CauseKind.MANUAL)
        assert Walker(system).run(I).ended == "PodEvictionFailure"
        node = system.kubernetes.by_name[NODE]
        assert well_known.EXCLUDE_LABEL not in node.labels
        assert well_known.EXCLUDED_BY_DRAIN not in node.annotations

    def test_a_label_of_another_owner_stays(self):
        system = a_system(pods=[a_pod()], budgets=[a_budget(0)])
        node = system.kubernetes.by_name[NODE]
        system.kubernetes.put_node(replace(node, labels={**node.labels, well_known.EXCLUDE_LABEL: "kops"}))
        claim(system, CauseKind.MANUAL)
        Walker(system).run(I)
        assert system.kubernetes.by_name[NODE].labels[well_known.EXCLUDE_LABEL] == "kops"

    def test_a_hook_is_heartbeaten_while_load_balancers_let_go(self):
        system = a_system(hooks=[our_hook(heartbeat_timeout=60)], pods=[a_pod()])
        system.groups.begin_terminating(GROUP, I)
        system.load_balancers.registered = [a_target()]
        claim(system, CauseKind.ASG_TERMINATE, hook="leeward-terminate", deadline=START + timedelta(seconds=60))
        assert Walker(system).run(I).ended == "Terminated"
        assert len(system.groups.heartbeats) >= 8


class TestVolumes:
    def test_the_instance_stays_until_the_volumes_of_its_pods_have_left(self):
        system = a_system(pods=[replace(a_pod(), claims=("data",))], drain=QUICK)
        attach(system)

        def look(passed):
            if passed >= timedelta(seconds=80):
                system.kubernetes.attachment_list.clear()

        claim(system, CauseKind.MANUAL)
        assert each_second(system, look).run(I).ended == "Terminated"
        times = system.claims.records[I].times
        assert times["terminating"] >= START + timedelta(seconds=80)
        assert times["terminating"] <= START + timedelta(seconds=112)
        (message,) = reported(system, "AwaitingVolumeDetachment")
        assert message.startswith("volume pv-1 of shop/data is still attached, until 2026-03-02T10:06:0")

    def test_it_is_reported_on_the_record_while_it_lasts(self):
        system = a_system(drain=QUICK)
        attach(system)
        claim(system, CauseKind.MANUAL)
        seen = set()
        each_second(system, lambda _: seen.update(system.claims.records[I].blocked_by)).run(I)
        assert any(one.startswith("volume pv-1 of shop/data is still attached") for one in seen)

    def test_one_that_never_leaves_is_waited_for_no_longer_than_the_policy_says(self):
        drain = DrainPolicy(settle=timedelta(0), volume_detach_timeout=timedelta(minutes=2))
        system = a_system(drain=drain)
        attach(system)
        claim(system, CauseKind.MANUAL)
        assert Walker(system).run(I).ended == "Terminated"
        terminating = system.claims.records[I].times["terminating"] - START
        assert timedelta(minutes=2) <= terminating <= timedelta(minutes=2, seconds=5)

    def test_a_spot_instance_is_let_go_before_it_is_taken(self):
        system = a_system(pods=[a_pod()], drain=QUICK)
        attach(system)
        spot(system)
        Walker(system).run(I)
        assert system.claims.records[I].times["terminating"] <= START + timedelta(seconds=116)

    def test_one_that_a_pod_uses_which_stays_holds_nothing_back(self):
        agent = Owner(api_version="apps/v1", kind="DaemonSet", name="agent")
        system = a_system(pods=[replace(a_pod("agent-1"), owner=agent, claims=("data",))], drain=QUICK)
        system.kubernetes.daemon_set_names = frozenset({"shop/agent"})
        attach(system)
        claim(system, CauseKind.MANUAL)
        Walker(system).run(I)
        assert system.claims.records[I].times["terminating"] == START

    def test_a_node_whose_kubelet_is_silent_is_not_waited_for(self):
        """No kubelet unmounts them there: they are free soonest when the instance has ended."""
        system = a_system(drain=QUICK)
        attach(system)
        system.kubernetes.put_node(replace(system.kubernetes.by_name[NODE], ready=False))
        claim(system, CauseKind.MANUAL)
        Walker(system).run(I)
        assert system.claims.records[I].times["terminating"] == START

    def test_settling_and_detaching_go_side_by_side(self):
        system = a_system(drain=DrainPolicy(settle=timedelta(seconds=60)))
        attach(system)

        def look(passed):
            if passed >= timedelta(seconds=50):
                system.kubernetes.attachment_list.clear()

        claim(system, CauseKind.MANUAL)
        each_second(system, look).run(I)
        assert system.claims.records[I].times["terminating"] - START <= timedelta(seconds=62)

    def test_what_a_vanished_instance_still_holds_is_freed_by_the_out_of_service_taint(self):
        """Kubernetes waits six minutes else. The taint goes on only once EC2 is sure that nothing can be written."""
        system = a_system()
        attach(system)
        claim(system, CauseKind.STATE_CHANGE)
        taints = []
        change_instance(system, state="shutting-down")

        def look(passed):
            node = system.kubernetes.by_name.get(NODE)
            if node is not None:
                taints.append((passed, {taint.key for taint in node.taints}))
            if passed >= timedelta(seconds=30):
                change_instance(system, state="terminated")
            if passed >= timedelta(seconds=60):
                system.kubernetes.attachment_list.clear()

        assert each_second(system, look).run(I).ended == "Terminated"
        with_taint = [passed for passed, keys_ in taints if well_known.OUT_OF_SERVICE_TAINT in keys_]
        assert timedelta(seconds=30) <= min(with_taint) <= timedelta(seconds=62)
        assert system.kubernetes.by_name == {}

    def test_a_node_is_removed_in_the_end_though_its_volumes_never_leave(self):
        system = a_system()
        attach(system)
        change_instance(system, state="terminated")
        claim(system, CauseKind.STATE_CHANGE)
        assert Walker(system).run(I).ended == "Terminated"
        removed = system.claims.records[I].times["removed"] - START
        assert timedelta(minutes=6) <= removed <= timedelta(minutes=6, seconds=40)


def a_lone_pod(**changes):
    return replace(a_pod(), owner=IN_A_SET, **changes)


def a_surging_system(*pods, deployment=SOLO, drain=SURGE, **more):
    system = a_system(pods=pods or [a_lone_pod()], drain=drain, **more)
    system.kubernetes.put_deployment(deployment)
    return system


def ready_after(system, seconds):
    """The second pod is available so long after replicas were raised."""
    raised = []

    def look(passed):
        now = system.kubernetes.deployment_by_key["shop/web"]
        if now.replicas == 2 and not raised:
            raised.append(passed)
        if raised and passed - raised[0] >= timedelta(seconds=seconds) and now.available < now.replicas:
            system.kubernetes.put_deployment(replace(now, available=now.replicas))

    return look


class TestSingleReplicas:
    def test_a_second_one_is_ready_before_the_only_one_leaves_and_replicas_are_put_back(self):
        system = a_surging_system()
        claim(system, CauseKind.MANUAL)
        assert each_second(system, ready_after(system, 40)).run(I).ended == "Terminated"
        assert system.kubernetes.done == ["scale shop/web 2", "evict shop/web-1", "scale shop/web 1"]
        assert system.claims.records[I].times["drained"] >= START + timedelta(seconds=40)
        assert system.claims.records[I].surges == {}

    def test_other_pods_do_not_wait_for_it(self):
        system = a_surging_system(a_lone_pod(), a_pod("web-2"))
        claim(system, CauseKind.MANUAL)
        each_second(system, ready_after(system, 40)).run(I)
        assert system.kubernetes.done[:2] == ["scale shop/web 2", "evict shop/web-2"]

    def test_without_the_policy_nothing_is_raised(self):
        system = a_surging_system(drain=QUICK)
        claim(system, CauseKind.MANUAL)
        Walker(system).run(I)
        assert system.kubernetes.done == ["evict shop/web-1"]

    def test_a_workload_of_several_is_left_to_its_budget(self):
        system = a_surging_system(deployment=replace(SOLO, replicas=3, available=3))
        claim(system, CauseKind.MANUAL)
        Walker(system).run(I)
        assert system.kubernetes.done == ["evict shop/web-1"]

    @pytest.mark.parametrize(
        ("pod", "deployment", "autoscaled", "why"),
        [
            (a_lone_pod(), SOLO, {"shop/web"}, "a HorizontalPodAutoscaler decides the replicas of shop/web"),
            (a_lone_pod(), replace(SOLO, recreate=True), (), "shop/web has the strategy Recreate"),
            (a_lone_pod(claims=("data",)), SOLO, (), "it keeps a volume (data)"),
            (a_lone_pod(), replace(SOLO, settled=False), (), "a rollout of shop/web is under way"),
            (
                replace(a_pod(), owner=Owner(api_version="apps/v1", kind="StatefulSet", name="db")),
                SOLO,
                (),
                "StatefulSet db",
            ),
        ],
    )
    def test_what_cannot_have_a_second_one_goes_at_once_and_the_reason_is_reported(
        self, pod, deployment, autoscaled, why
    ):
        system = a_surging_system(pod, deployment=deployment)
        system.kubernetes.autoscaled_keys = set(autoscaled)
        claim(system, CauseKind.MANUAL)
        assert Walker(system).run(I).ended == "Terminated"
        assert system.kubernetes.done == ["evict shop/web-1"]
        assert reported(system, "NotSurged")[0].startswith(f"no second replica is started before its eviction: {why}")

    def test_a_pod_that_a_budget_keeps_gets_the_event_once(self):
        """Its eviction is tried again for a quarter of an hour, and an Event of ten minutes ago is no repeat."""
        system = a_surging_system(a_lone_pod(claims=("data",)), budgets=[a_budget(0)])
        claim(system, CauseKind.MANUAL)
        assert Walker(system).run(I).ended == "PodEvictionFailure"
        assert len(reported(system, "NotSurged")) == 1

    def test_a_second_one_that_never_gets_ready_is_given_up_after_half_of_the_drains_time(self):
        system = a_surging_system()
        claim(system, CauseKind.MANUAL)
        assert Walker(system).run(I).ended == "Terminated"
        assert system.kubernetes.done == ["scale shop/web 2", "evict shop/web-1", "scale shop/web 1"]
        assert START + timedelta(minutes=7, seconds=30) <= system.claims.records[I].times["drained"]

    def test_a_node_that_is_returned_leaves_no_second_one_behind(self):
        system = a_surging_system(budgets=[a_budget(0)])
        claim(system, CauseKind.MANUAL)
        assert each_second(system, ready_after(system, 10)).run(I).ended == "PodEvictionFailure"
        assert system.kubernetes.done == ["scale shop/web 2", "scale shop/web 1"]

    @pytest.mark.parametrize("leaves", ["deleted", "asked to end"])
    def test_a_pod_that_others_end_leaves_no_second_one_while_the_node_is_still_blocked(self, leaves):
        refused, policy = replace(a_pod("cache"), empty_dir=True), replace(SURGE, force=True, delete_local_data=False)
        system = a_surging_system(a_lone_pod(), refused, drain=policy)
        claim(system, CauseKind.MANUAL)
        pods, put_back = system.kubernetes.by_key, []

        def look(passed):
            if passed == timedelta(seconds=30):
                lone = pods.pop("shop/web-1")
                if leaves == "asked to end":
                    pods["shop/web-1"] = replace(lone, deletion=START + timedelta(hours=1))
            if not put_back and system.kubernetes.done[-1:] == ["scale shop/web 1"]:
                put_back.append(passed)
            if passed >= timedelta(minutes=10):
                pods.clear()

        assert each_second(system, look).run(I).ended == "Terminated"
        assert system.kubernetes.done == ["scale shop/web 2", "scale shop/web 1"]
        assert put_back[0] < timedelta(minutes=2)

    def test_one_that_cannot_be_put_back_at_once_is_not_forgotten_by_the_next_raise(self):
        system = a_surging_system()
        claim(system, CauseKind.MANUAL)
        scale, refused = system.kubernetes.scale, []

        def fail_once(deployment, replicas):
            if replicas == 1 and not refused:
                refused.append(deployment.key)
                other = replace(SOLO, name="api")
                system.kubernetes.put_deployment(other)
                owner = replace(IN_A_SET, name="api-7c1")
                system.kubernetes.put_pod(replace(a_lone_pod(), name="api-1", uid="uid-api-1", owner=owner))
                raise ThrottledError("scale: too many requests")
            return scale(deployment, replicas)

        system.kubernetes.scale = fail_once
        assert each_second(system, ready_after(system, 10)).run(I).ended == "Terminated"
        assert refused == ["shop/web"]
        assert {key: one.replicas for key, one in system.kubernetes.deployment_by_key.items()} == {
            "shop/web": 1,
            "shop/api": 1,
        }

    def test_a_step_that_outlives_its_execution_leaves_no_second_one_behind(self):
        """The next attempt raises another Deployment, from a record that it read before the old step raised its own."""
        system = a_surging_system()
        claim(system, CauseKind.MANUAL)
        pods_on, steps = system.kubernetes.pods_on, []

        def list_pods(node, **options):
            if not steps:
                steps.append("the step of the attempt before")
                STEPS["drain"](Run(instance=I, attempt=1, version=1, next=Next.DRAIN), {}, system.ports)
                system.kubernetes.put_deployment(replace(SOLO, name="api"))
                owner = replace(IN_A_SET, name="api-7c1")
                system.kubernetes.put_pod(replace(a_lone_pod(), name="api-1", uid="uid-api-1", owner=owner))
            return pods_on(node, **options)

        system.kubernetes.pods_on = list_pods
        assert Walker(system).run(I).ended == "Terminated"
        scaled = [done for done in system.kubernetes.done if done.startswith("scale")]
        assert scaled[:2] == ["scale shop/web 2", "scale shop/api 2"]
        assert {key: one.replicas for key, one in system.kubernetes.deployment_by_key.items()} == {
            "shop/web": 1,
            "shop/api": 1,
        }

    def test_an_instance_that_vanishes_meanwhile_leaves_no_second_one_behind(self):
        system = a_surging_system()
        claim(system, CauseKind.MANUAL)

        def look(passed):
            if passed >= timedelta(seconds=30):
                change_instance(system, state="terminated")

        assert each_second(system, look).run(I).ended == "Terminated"
        assert system.kubernetes.done == ["scale shop/web 2", "scale shop/web 1"]
        assert system.claims.records[I].surges == {}

    def test_an_owner_that_puts_it_back_at_once_is_not_fought(self):
        """GitOps: an operator that owns the replicas."""
        system = a_surging_system()
        scale = system.kubernetes.scale

        def reverted(deployment, replicas):
            done = scale(deployment, replicas)
            now = system.kubernetes.deployment_by_key["shop/web"]
            system.kubernetes.put_deployment(replace(now, replicas=1, resource_version=f"{now.resource_version}0"))
            return done

        system.kubernetes.scale = reverted
        claim(system, CauseKind.MANUAL)
        assert Walker(system).run(I).ended == "Terminated"
        assert system.kubernetes.done == ["scale shop/web 2", "evict shop/web-1"]

    def test_replicas_that_change_all_the_time_are_put_back_when_they_rest(self):
        system = a_surging_system()
        claim(system, CauseKind.MANUAL)
        look, scale, lost = ready_after(system, 10), system.kubernetes.scale, []

        def contested(deployment, replicas):
            if replicas == 1 and len(lost) < 7:
                lost.append(deployment)
                return False
            return scale(deployment, replicas)

        system.kubernetes.scale = contested
        assert each_second(system, look).run(I).ended == "Terminated"
        assert system.kubernetes.done == ["scale shop/web 2", "evict shop/web-1", "scale shop/web 1"]

    def test_replicas_that_an_owner_has_changed_since_stay_as_they_are(self):
        system = a_surging_system()
        claim(system, CauseKind.MANUAL)

        def look(passed):
            if passed == timedelta(seconds=20):
                now = system.kubernetes.deployment_by_key["shop/web"]
                system.kubernetes.put_deployment(replace(now, replicas=5, available=5, resource_version="77"))

        each_second(system, look).run(I)
        assert system.kubernetes.deployment_by_key["shop/web"].replicas == 5
        assert system.claims.records[I].surges == {}

    @pytest.mark.parametrize("forbidden", ["deployment_of", "autoscaled", "scale"])
    def test_without_the_right_to_scale_the_pod_is_evicted_as_without_surge_and_an_event_names_the_manifest(
        self, forbidden
    ):
        system = a_surging_system()
        system.kubernetes.fail(forbidden, AccessDeniedError("patch deployments/scale"))
        claim(system, CauseKind.MANUAL)
        assert Walker(system).run(I).ended == "Terminated"
        assert system.kubernetes.done == ["evict shop/web-1"]
        (reason,) = reported(system, "NotSurged")
        assert "patch deployments/scale (kubectl apply -f manifests/replica-surge-role.yaml)" in reason
        assert system.claims.records[I].surges == {}

    def test_a_permission_that_is_taken_away_meanwhile_ends_no_termination(self):
        system = a_surging_system()
        claim(system, CauseKind.MANUAL)
        ready = ready_after(system, 10)

        def look(passed):
            ready(passed)
            if passed >= timedelta(seconds=5):
                system.kubernetes.fail("scale", AccessDeniedError("patch deployments/scale"))

        assert each_second(system, look).run(I).ended == "Terminated"
        assert system.kubernetes.done == ["scale shop/web 2", "evict shop/web-1"]

    @pytest.mark.parametrize("killed", ["drain", "return-to-service", "remove-node"])
    def test_a_step_that_is_killed_anywhere_raises_once_and_puts_back(self, killed):
        budgets = [a_budget(0)] if killed == "return-to-service" else []
        system = a_surging_system(budgets=budgets)
        claim(system, CauseKind.MANUAL)
        look = ready_after(system, 20)
        walker = Walker(system, before=lambda *_: look(system.clock.now() - START), killed=[killed])
        walker.run(I)
        scalings = [done for done in system.kubernetes.done if done.startswith("scale")]
        assert scalings == ["scale shop/web 2", "scale shop/web 1"]
        assert system.claims.records[I].surges == {}

    def test_a_spot_instance_gets_its_second_one_in_the_time_that_there_is(self):
        system = a_surging_system()
        spot(system)
        each_second(system, ready_after(system, 20)).run(I)
        assert system.kubernetes.done == ["scale shop/web 2", "evict shop/web-1", "scale shop/web 1"]
        assert system.claims.records[I].times["drained"] <= START + timedelta(seconds=60)
        assert ended(system)[1].value == "terminated"
