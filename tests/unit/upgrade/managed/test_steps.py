"""Managed node groups: EKS rolls them, we start, watch and name what blocks (U10, U12, U14)."""

import json
from dataclasses import replace

import pytest

from leeward.errors import InvalidInputError, TerminalError
from leeward.model import well_known
from leeward.model.node import disruption_taint
from leeward.model.pod import Owner, Pod, PodDisruptionBudget
from leeward.policy.document import DrainPolicy
from leeward.ports.eks import ManagedState
from leeward.upgrade.control import limits
from leeward.upgrade.managed.steps import STEPS
from leeward.upgrade.reconciler import handle_failed_execution
from leeward.upgrade.record import ControlRequest
from leeward.upgrade.run import UpgradeNext, UpgradeRun
from leeward.upgrade.steps import STEPS as SELF_MANAGED_STEPS
from tests.fakes.builders import CLUSTER, DEPLOYMENT, GROUP, a_group, a_node, a_policy, an_instance, policies
from tests.fakes.system import FakeSystem

NAME = "web-1"
EVICTION = "PodEvictionFailure: reached max retries while trying to evict pods: shop/web"


@pytest.fixture
def system():
    tags = {well_known.EKS_CLUSTER_TAGS[0]: CLUSTER, well_known.NODEGROUP_TAG: "ng"}
    group = replace(a_group(GROUP, "i-0abc"), tags=tags)
    found = FakeSystem(instances=[an_instance()], groups=[group], nodes=[a_node()])
    found.managed_updates.model.know(CLUSTER, "ng")
    return found


def step(system, name, run, **call):
    return STEPS[name](run, {"step": name, "run": run.to_json() | call, "execution": NAME}, system.ports)


def begun(system, **asked):
    run = UpgradeRun(group=GROUP, execution=NAME, next=UpgradeNext.CHECK)
    return step(system, "take-lease", run, **asked)


def watched(system, run):
    return step(system, "watch-managed", run)


def test_during_a_zonal_shift_no_update_of_eks_is_started(system):
    run = begun(system, launchTemplateVersion="2")
    system.shift(system.groups.by_name[GROUP].zones[0])
    run = step(system, "start-managed", run)
    assert run.next is UpgradeNext.WINDOW
    assert "EKS would replace nodes in that zone" in run.why
    assert not system.upgrades.records[GROUP].update
    system.shift()
    assert step(system, "start-managed", run).next is UpgradeNext.WAIT


def test_a_managed_group_is_handed_to_eks_and_nothing_is_written_through_auto_scaling(system):
    run = begun(system, launchTemplateVersion="2")
    assert run.next is UpgradeNext.MANAGED
    run = step(system, "start-managed", run)
    assert run.next is UpgradeNext.WAIT, run.why
    assert watched(system, run).next is UpgradeNext.WAIT
    system.managed_updates.end(system.upgrades.records[GROUP].update)
    assert watched(system, run).next is UpgradeNext.RESTORE
    assert step(system, "restore", run).next is UpgradeNext.UPGRADED
    assert not system.group_changes.asked
    assert not system.groups.launches


def test_started_as_a_self_managed_group_it_is_passed_on_once(system):
    run = begun(system)
    for _ in range(2):  # as if the first answer had got lost
        passed = SELF_MANAGED_STEPS["continue"](run, {"step": "continue"}, system.ports)
        assert (passed.next, passed.why) == (UpgradeNext.CONTINUED, f"execution {GROUP}-2 continues")
    assert not system.upgrade_executions.started
    assert system.managed_upgrade_executions.open == {f"{GROUP}-2"}
    (given, *_) = [document for _, document in system.managed_upgrade_executions.started]
    taken = STEPS["take-lease"](UpgradeRun.from_json(given), {"run": given, "execution": f"{GROUP}-2"}, system.ports)
    assert (taken.next, taken.attempt, system.upgrades.records[GROUP].execution) == (
        UpgradeNext.MANAGED,
        2,
        f"{GROUP}-2",
    )
    lost = SELF_MANAGED_STEPS["continue"](run, {"step": "continue"}, system.ports)
    assert lost.next is UpgradeNext.HAND_OVER


@pytest.mark.parametrize("machine", ["upgrade_executions", "managed_upgrade_executions"])
def test_an_execution_of_either_state_machine_holds_the_lease(system, machine):
    begun(system)
    getattr(system, machine).open.add(NAME)
    run = UpgradeRun(group=GROUP, execution="second", next=UpgradeNext.CHECK)
    second = STEPS["take-lease"](run, {"run": run.to_json(), "execution": "second"}, system.ports)
    assert (second.next, second.why) == (UpgradeNext.HAND_OVER, f"execution {NAME} holds the group")
    ended = {"name": NAME, "status": "ABORTED", "input": json.dumps({"group": GROUP})}
    assert handle_failed_execution(ended, system.ports).endswith("and left nothing")


def test_starting_it_again_starts_no_second_update(system):
    run = begun(system)
    step(system, "start-managed", run)
    first = system.upgrades.records[GROUP].update
    system.upgrades.write(replace(system.upgrades.records[GROUP], update=""))  # as if the answer had got lost
    step(system, "start-managed", run)
    assert system.upgrades.records[GROUP].update == first


def test_an_update_whose_answer_was_lost_until_the_upgrade_failed_is_watched_by_the_next_start(system):
    run = begun(system, launchTemplateVersion="2")
    step(system, "start-managed", run)
    first = system.upgrades.records[GROUP].update
    system.upgrades.write(replace(system.upgrades.records[GROUP], update=""))
    SELF_MANAGED_STEPS["note-failure"](run, {"error": "AwsUnavailableError", "cause": "no answer"}, system.ports)
    call = {"run": UpgradeRun(group=GROUP, execution="web-2", next=UpgradeNext.CHECK).to_json(), "execution": "web-2"}
    again = STEPS["take-lease"](UpgradeRun(group=GROUP, execution="web-2", next=UpgradeNext.CHECK), call, system.ports)
    assert step(system, "start-managed", again).next is UpgradeNext.WAIT
    assert system.upgrades.records[GROUP].update == first


def test_an_update_that_eks_refused_is_asked_for_anew_by_the_next_start(system):
    run = begun(system, launchTemplateVersion="2")
    refused = replace(run, next=UpgradeNext.UPDATE_FAILURE, why="EKS refuses the update of ng")
    system.upgrades.write(replace(system.upgrades.records[GROUP], prepared=True))
    SELF_MANAGED_STEPS["note-failure"](refused, {}, system.ports)
    call = {"run": UpgradeRun(group=GROUP, execution="web-2", next=UpgradeNext.CHECK).to_json(), "execution": "web-2"}
    STEPS["take-lease"](UpgradeRun(group=GROUP, execution="web-2", next=UpgradeNext.CHECK), call, system.ports)
    record = system.upgrades.records[GROUP]
    assert (record.tries, record.prepared) == (1, False)


def test_what_holds_eks_is_named_meanwhile(system):
    run = step(system, "start-managed", begun(system))
    mark = disruption_taint(DEPLOYMENT)
    node = a_node(taints=(mark,))
    system.kubernetes.put_node(node)
    owner = Owner(api_version="apps/v1", kind="ReplicaSet", name="web")
    labels = {"app": "web"}
    system.kubernetes.put_pod(
        Pod(
            namespace="shop",
            name="web-1",
            uid="1",
            node=node.name,
            phase="Running",
            labels=labels,
            owner=owner,
            ready=True,
        )
    )
    system.kubernetes.budget_list.append(
        PodDisruptionBudget(namespace="shop", name="web", selector={"matchLabels": labels}, disruptions_allowed=0)
    )
    assert "shop/web-1: pdb shop/web" in watched(system, run).why


def test_pods_that_do_not_leave_fail_it_and_the_next_start_begins_another_update(system):
    run = step(system, "start-managed", begun(system))
    system.managed_updates.end(system.upgrades.records[GROUP].update, ManagedState.FAILED, EVICTION)
    failed = watched(system, run)
    assert failed.next is UpgradeNext.EVICTION_FAILURE
    assert failed.why == f"{EVICTION}; nothing holds the pods now: start it again"
    step(system, "note-failure", failed)
    again = begun(system)
    assert (again.next, again.attempt) == (UpgradeNext.MANAGED, 2)
    assert step(system, "start-managed", again).next is UpgradeNext.WAIT


def test_a_policy_that_forces_starts_it_again_by_force(system):
    forcing = replace(a_policy(), drain=DrainPolicy(force=True))
    system = FakeSystem(
        instances=[an_instance()],
        groups=[system.groups.by_name[GROUP]],
        nodes=[a_node()],
        written=policies(forcing),
    )
    system.managed_updates.model.know(CLUSTER, "ng")
    run = step(system, "start-managed", begun(system))
    first = system.upgrades.records[GROUP].update
    system.managed_updates.end(first, ManagedState.FAILED, EVICTION)
    again = watched(system, run)
    assert again.next is UpgradeNext.MANAGED
    assert step(system, "start-managed", again).next is UpgradeNext.WAIT
    assert system.upgrades.records[GROUP].update != first
    assert system.managed_updates.model.updates[system.upgrades.records[GROUP].update].asked == (None, None, True)


@pytest.mark.parametrize("code", ["NodeCreationFailure", "AsgInstanceLaunchFailures", "InsufficientFreeAddresses"])
def test_new_nodes_that_do_not_come_are_a_node_creation_failure(system, code):
    run = step(system, "start-managed", begun(system))
    said = f"{code}: Couldn't proceed with upgrade process"
    system.managed_updates.end(system.upgrades.records[GROUP].update, ManagedState.FAILED, said)
    failed = watched(system, run)
    assert failed.next is UpgradeNext.CREATION_FAILURE
    assert failed.why.startswith(f"{said}; us-east-1a: no new node could be launched")


def test_a_refusal_of_eks_is_reported(system):
    system.managed_updates.fail("start", TerminalError("ResourceInUseException: it is being updated"))
    refused = step(system, "start-managed", begun(system))
    assert (refused.next, "it is being updated" in refused.why) == (UpgradeNext.UPDATE_FAILURE, True)


@pytest.mark.parametrize("control", [ControlRequest.PAUSE, ControlRequest.ABORT, ControlRequest.ROLLBACK])
def test_the_limit_of_a_control_request_is_reported_only_while_eks_rolls(system, control):
    step(system, "start-managed", begun(system))
    rolling = replace(system.upgrades.records[GROUP], control=control)
    assert "EKS cannot" in limits(rolling)
    assert limits(replace(rolling, update="")) == ""
    assert limits(replace(rolling, control=ControlRequest.RUN)) == ""


def test_any_other_failure_is_reported_in_eks_own_words(system):
    run = step(system, "start-managed", begun(system))
    said = "ClusterUnreachable: the API server does not answer"
    system.managed_updates.end(system.upgrades.records[GROUP].update, ManagedState.FAILED, said)
    failed = watched(system, run)
    assert (failed.next, failed.why) == (UpgradeNext.UPDATE_FAILURE, said)
    assert watched(system, run) == failed, "looked at twice, it is the same"


def test_an_update_of_eks_in_which_nothing_moves_for_hours_ends_with_what_holds_it_and_is_watched_again(system):
    run = step(system, "start-managed", begun(system))
    update = system.upgrades.records[GROUP].update
    assert watched(system, run).next is UpgradeNext.WAIT
    system.clock.advance(seconds=3 * 3600 + 60)
    failed = watched(system, run)
    assert failed.next is UpgradeNext.UPDATE_FAILURE
    assert f"EKS update {update}: 0 new nodes, 1 old; nothing has moved for 3h" in failed.why
    step(system, "note-failure", failed)
    again = begun(system)
    assert step(system, "start-managed", again).why == f"update {update} continues"


def test_an_event_says_what_eks_would_meet_on_a_cordoned_node_that_it_may_not_drain_yet(system):
    cordoned = replace(a_node(), unschedulable=True)
    budget = PodDisruptionBudget(
        namespace="shop", name="web", selector={"matchLabels": {"app": "web"}}, disruptions_allowed=0
    )
    owner = Owner(api_version="apps/v1", kind="ReplicaSet", name="web-1")
    pod = Pod(
        namespace="shop",
        name="web-1",
        uid="u",
        node=cordoned.name,
        phase="Running",
        ready=True,
        labels={"app": "web"},
        owner=owner,
    )
    system.kubernetes.put_node(cordoned)
    system.kubernetes.put_pod(pod)
    system.kubernetes.budget_list = [budget]
    run = step(system, "start-managed", begun(system))
    watched(system, run)
    assert system.kubernetes.events == []
    watched(system, run)
    (event,) = system.kubernetes.events
    assert (event.about, event.reason) == (cordoned.name, "DrainBlocked")
    assert event.message.startswith("EKS could not drain it now: shop/web-1: pdb shop/web: ")


RELEASE = ("1.32", "1.32.9-20251023")


def rolled_back(system, **more):
    """An update of EKS' own image has succeeded; the run that a rollback of it begins."""
    system.managed_updates.model.know(CLUSTER, "ng", version=RELEASE[0], release=RELEASE[1], **more)
    run = step(system, "start-managed", begun(system))
    update = system.upgrades.records[GROUP].update
    system.managed_updates.end(update)
    assert step(system, "restore", watched(system, run)).next is UpgradeNext.UPGRADED
    ended = watched(system, step(system, "start-managed", begun(system, action="rollback")))
    assert ended.next is UpgradeNext.MANAGED
    return ended


def test_a_rollback_of_eks_own_image_asks_eks_and_reports_its_refusal(system):
    refused = step(system, "start-managed", rolled_back(system))
    assert refused.next is UpgradeNext.UPDATE_FAILURE
    assert "You cannot roll back a node group to an earlier Kubernetes version or AMI version" in refused.why
    assert f"make another node group of version {RELEASE[0]}, release {RELEASE[1]}" in refused.why
    assert system.managed_updates.model.releases == [RELEASE[1]]
    assert system.group_changes.asked == {}


def test_where_eks_takes_the_group_back_the_rollback_is_an_update_like_any_other(system):
    run = rolled_back(system)
    system.managed_updates.model.takes_back = True
    assert step(system, "start-managed", run).next is UpgradeNext.WAIT
    update = system.managed_updates.model.updates[system.upgrades.records[GROUP].update]
    assert (update.asked, system.managed_updates.model.releases) == ((RELEASE[0], None, False), [RELEASE[1]])
    system.managed_updates.end(update.id)
    assert step(system, "restore", watched(system, run)).next is UpgradeNext.ROLLED_BACK


def test_a_custom_image_without_another_template_version_is_nothing_to_ask_eks_for(system):
    with pytest.raises(InvalidInputError, match="nor a release of EKS' image"):
        rolled_back(system, ami_type="CUSTOM")
