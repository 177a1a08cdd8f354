"""Which pods leave, stay or forbid the drain: kubectl drain's filters, Karpenter's waves, policy/v1's budgets."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from leeward.budgets.pdb import blocking_budgets
from leeward.model.pod import Owner, Pod, PodDisruptionBudget
from leeward.model.termination import DrainOptions
from leeward.policy.document import DrainPolicy
from leeward.termination.drain_plan import DrainTerms, PodRemoval, plan_drain, turn_times
from tests.fakes.builders import a_node

NOW = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)
REPLICA_SET = Owner(api_version="apps/v1", kind="ReplicaSet", name="web-5d4")
DAEMON_SET = Owner(api_version="apps/v1", kind="DaemonSet", name="agent")
PLAIN = DrainPolicy()


def a_pod(name="web-1", **changes):
    pod = Pod(namespace="shop", name=name, uid=name, node="n", phase="Running", ready=True, owner=REPLICA_SET)
    return replace(pod, labels={"app": "web"}, **changes)


def a_budget(allowed=0, name="web", **changes):
    budget = PodDisruptionBudget(
        namespace="shop", name=name, selector={"matchLabels": {"app": "web"}}, disruptions_allowed=allowed
    )
    return replace(budget, **changes)


def plan(*pods, budgets=(), policy=PLAIN, daemon_sets=frozenset({"shop/agent"}), **more):
    terms = DrainTerms(policy=policy, now=NOW, **more)
    return plan_drain(node=a_node(), pods=pods, budgets=budgets, daemon_sets=daemon_sets, terms=terms)


def names(parts):
    return [part.pod.name for part in parts]


def test_a_plain_pod_is_evicted():
    found = plan(a_pod())
    assert names(found.evict) == ["web-1"]
    assert found.evict[0].removal is PodRemoval.EVICT
    assert found.evict[0].grace_seconds is None


def test_mirror_pods_and_pods_of_living_daemon_sets_stay():
    static = a_pod("static", annotations={"kubernetes.io/config.mirror": "x"})
    found = plan(static, a_pod("agent-1", owner=DAEMON_SET))
    assert found.drained
    assert names(found.leave) == ["agent-1", "static"]


def test_a_pod_of_a_daemon_set_that_does_not_exist_is_treated_like_one_without_controller():
    """kubectl: an orphan is deleted with --force, and refused without."""
    orphan = a_pod("agent-1", owner=DAEMON_SET)
    assert names(plan(orphan, daemon_sets=frozenset()).evict) == ["agent-1"]
    careful = DrainPolicy(evict_unmanaged=False)
    assert names(plan(orphan, daemon_sets=frozenset(), policy=careful).refuse) == ["agent-1"]


def test_a_daemon_set_of_another_api_group_does_not_hold_its_pods():
    """kubectl asks for apps/v1; OpenKruise's DaemonSet is none."""
    kruise = Owner(api_version="apps.kruise.io/v1alpha1", kind="DaemonSet", name="agent")
    assert names(plan(a_pod("agent-1", owner=kruise)).evict) == ["agent-1"]


def test_daemon_set_pods_are_refused_when_they_are_not_to_be_ignored():
    found = plan(a_pod("agent-1", owner=DAEMON_SET), options=DrainOptions(ignore_daemon_sets=False))
    assert names(found.refuse) == ["agent-1"]


def test_unmanaged_pods_and_local_data_are_refused_where_the_policy_says_so():
    careful = DrainPolicy(evict_unmanaged=False, delete_local_data=False)
    found = plan(a_pod("lone", owner=None), a_pod("cache", empty_dir=True), policy=careful)
    assert names(found.refuse) == ["cache", "lone"]
    assert not found.drained


def test_a_flag_wins_over_the_policy():
    careful = DrainPolicy(evict_unmanaged=False, delete_local_data=False)
    options = DrainOptions(evict_unmanaged=True, delete_local_data=True)
    assert plan(a_pod("lone", owner=None, empty_dir=True), policy=careful, options=options).refuse == ()


def test_a_finished_pod_never_refuses():
    careful = DrainPolicy(evict_unmanaged=False, delete_local_data=False)
    done = a_pod("job", owner=None, empty_dir=True, phase="Succeeded")
    assert names(plan(done, policy=careful).evict) == ["job"]


def test_a_pod_long_past_its_deletion_deadline_is_not_waited_for():
    stuck = a_pod("stuck", deletion=NOW - timedelta(seconds=61))
    leaving = a_pod("leaving", deletion=NOW - timedelta(seconds=59))
    found = plan(stuck, leaving)
    assert names(found.leave) == ["stuck"]
    assert names(found.evict) == ["leaving"]
    patient = DrainOptions(skip_wait_for_delete=timedelta(hours=1))
    assert names(plan(stuck, options=patient).evict) == ["stuck"]


def test_critical_pods_go_in_the_last_of_the_waves_that_there_are():
    critical = a_pod("dns", priority_class="system-cluster-critical")
    assert {e.pod.name: e.wave for e in plan(critical, a_pod()).evict} == {"web-1": 0, "dns": 1}
    assert plan(critical).evict[0].wave == 0


def test_the_four_waves_are_others_their_daemons_critical_pods_and_theirs():
    """Karpenter's order of termination. Pods of a DaemonSet have a wave of their own where they have to go at all."""
    gone = {"owner": DAEMON_SET, "priority_class": ""}
    found = plan(
        a_pod("critical-agent", **{**gone, "priority_class": "system-node-critical"}),
        a_pod("dns", priority_class="system-cluster-critical"),
        a_pod("agent", **gone),
        a_pod("web"),
        daemon_sets=frozenset(),
    )
    assert [(one.pod.name, one.wave) for one in found.evict] == [
        ("web", 0),
        ("agent", 1),
        ("dns", 2),
        ("critical-agent", 3),
    ]


def test_the_first_wave_is_all_that_may_go_now():
    critical = a_pod("dns", priority_class="system-node-critical")
    assert names(plan(critical, a_pod()).turn) == ["web-1"]


def test_a_budget_that_allows_none_is_named():
    assert plan(a_pod(), budgets=[a_budget(0)]).evict[0].blocked_by == ("pdb shop/web",)
    assert plan(a_pod(), budgets=[a_budget(1)]).evict[0].blocked_by == ()


def test_two_budgets_on_a_pod_block_it_whatever_they_allow():
    found = blocking_budgets(a_pod(), [a_budget(5), a_budget(5, "also")])
    assert found == ("pdb shop/also", "pdb shop/web")


def test_unready_pods_pass_where_policy_v1_lets_them():
    broken = a_pod(ready=False)
    assert blocking_budgets(broken, [a_budget(0)])
    assert not blocking_budgets(broken, [a_budget(0, always_allow_unhealthy=True)])
    assert not blocking_budgets(broken, [a_budget(0, current_healthy=2, desired_healthy=2)])


def test_pending_finished_and_leaving_pods_are_no_matter_of_a_budget():
    for pod in (a_pod(phase="Pending"), a_pod(phase="Failed"), a_pod(deletion=NOW)):
        assert blocking_budgets(pod, [a_budget(0)]) == ()


def test_without_eviction_nothing_is_asked():
    found = plan(a_pod(), budgets=[a_budget(0)], options=DrainOptions(disable_eviction=True, grace_seconds=5))
    assert (found.evict[0].removal, found.evict[0].blocked_by, found.evict[0].grace_seconds) == (
        PodRemoval.DELETE,
        (),
        5,
    )


def test_a_pod_is_deleted_at_the_deadline_less_its_own_grace_so_that_it_gets_all_of_it():
    """Karpenter's rule for terminationGracePeriod."""
    policy = DrainPolicy(termination_grace_period=timedelta(minutes=10))
    deadline = NOW + timedelta(seconds=60)
    patient, quick = a_pod("patient", grace_seconds=60), a_pod("quick", grace_seconds=5)
    found = plan(patient, quick, policy=policy, deadline=deadline)
    assert {e.pod.name: e.removal for e in found.evict} == {"patient": PodRemoval.DELETE, "quick": PodRemoval.EVICT}
    assert turn_times(found) == (NOW, deadline - timedelta(seconds=5))


def test_a_deadline_alone_deletes_nothing():
    found = plan(a_pod(), deadline=NOW - timedelta(hours=1))
    assert found.evict[0].removal is PodRemoval.EVICT
    assert turn_times(found) == ()


pods = st.builds(
    a_pod,
    st.sampled_from(["a", "b", "c", "d", "e"]),
    phase=st.sampled_from(["Running", "Pending", "Succeeded"]),
    ready=st.booleans(),
    owner=st.sampled_from([None, REPLICA_SET, DAEMON_SET]),
    empty_dir=st.booleans(),
    priority_class=st.sampled_from(["", "system-cluster-critical"]),
    deletion=st.sampled_from([None, NOW, NOW - timedelta(minutes=5)]),
)
fleets = st.lists(pods, max_size=5, unique_by=lambda pod: pod.name)
policies = st.builds(DrainPolicy, evict_unmanaged=st.booleans(), delete_local_data=st.booleans(), force=st.booleans())


@given(fleets, policies)
def test_every_pod_has_exactly_one_fate(fleet, policy):
    found = plan(*fleet, policy=policy)
    assert sorted(names(found.evict) + names(found.leave) + names(found.refuse)) == sorted(p.name for p in fleet)


@given(fleets, policies, st.randoms(use_true_random=False))
def test_a_plan_does_not_depend_on_the_order_of_its_input(fleet, policy, random):
    shuffled = list(fleet)
    random.shuffle(shuffled)
    assert plan(*fleet, policy=policy) == plan(*shuffled, policy=policy)


@given(fleets)
def test_waves_count_from_zero_without_gaps(fleet):
    waves = {eviction.wave for eviction in plan(*fleet).evict}
    assert waves == set(range(len(waves)))


def test_local_volumes_that_the_pod_names_as_safe_leave_for_voluntary_disruption_alone():
    pod = a_pod("tmp", empty_dir=True, disposable=True)
    careful = DrainPolicy(delete_local_data=False)
    assert names(plan(pod, policy=careful, options=DrainOptions(voluntary=True)).evict) == ["tmp"]
    assert names(plan(pod, policy=careful).refuse) == ["tmp"]


def test_safe_to_evict_lifts_what_the_policy_refuses_for_voluntary_disruption_alone():
    careful = DrainPolicy(evict_unmanaged=False, delete_local_data=False)
    safe = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"}
    pod = a_pod("lone", owner=None, empty_dir=True, annotations=safe)
    assert names(plan(pod, policy=careful, options=DrainOptions(voluntary=True)).evict) == ["lone"]
    assert names(plan(pod, policy=careful).refuse) == ["lone"]
    unsafe = a_pod("lone", owner=None, empty_dir=True)
    assert names(plan(unsafe, policy=careful, options=DrainOptions(voluntary=True)).refuse) == ["lone"]
