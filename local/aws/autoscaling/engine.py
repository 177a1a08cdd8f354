"""Engine that moves instances of groups through their lifecycle states: launch, hooks, service, termination.

All methods expect the caller to hold the model's lock. ``shape`` decides the offerings that may be launched; requests
are checked in ``api`` and ``launch_instances``.
"""

from __future__ import annotations

import functools
import time
from typing import Any

from local.aws.autoscaling import messages, rebalancing, resizing, scale_in, shape
from local.aws.autoscaling.activities import Activities
from local.aws.autoscaling.hooks import GroupKey, HookBook, Result, Transition
from local.aws.autoscaling.launching import launch
from local.aws.autoscaling.shape import CapacityError, Offering, Shortages, counted, serving
from local.aws.autoscaling.waits import Waits
from local.aws.ec2 import LIVE_STATES, Pace
from local.aws.journal import Journal
from local.aws.outbox import Outbox
from local.aws.timeline import Timeline

RETRY_SECONDS = 3.0
_MOMENT = 0.05
_BY_DIFFERENCE = "an instance was started in response to a difference between desired and actual capacity."
_BY_EC2 = "an instance was taken out of service in response to an EC2 health check indicating it has been terminated."
_BY_USER = "an instance was taken out of service in response to a user health-check."


def key_of(group: Any) -> GroupKey:
    """Return the group's identity across regions and accounts."""
    return GroupKey(account=group.account_id, region=group.region, name=group.name)


def is_suspended(group: Any, process: str) -> bool:
    """Return whether SuspendProcesses holds for a process of the group."""
    return process in group._suspended_processes


class Engine:
    """Engine of Auto Scaling, which moves instances."""

    def __init__(self, outbox: Outbox, timeline: Timeline, journal: Journal, pace: Pace) -> None:
        self.outbox = outbox
        self.journal = journal
        self.pace = pace
        self.timeline = timeline
        self.hooks = HookBook()
        self.waits = Waits()
        self.shortages = Shortages()
        self.activities = Activities()
        self._retry_after: dict[GroupKey, float] = {}

    # -- capacity ------------------------------------------------------------------------------------------------

    def reconcile(self, group: Any) -> None:
        """Launch or terminate until the counted instances are as many as desired, where processes allow it."""
        missing = (group.desired_capacity or 0) - len(counted(group))
        if missing > 0 and not is_suspended(group, "Launch"):
            self._launch_missing(group, missing)
        elif missing < 0 and not is_suspended(group, "Terminate"):
            for state in scale_in.victims(group, -missing):
                size = len(counted(group))
                self.begin_termination(group, state, scale_in.surplus_cause(group, size, size - 1))

    def _launch_missing(self, group: Any, missing: int) -> None:
        key = key_of(group)
        if self._retry_after.get(key, 0.0) > time.monotonic():
            return
        for _ in range(missing):
            size = len(counted(group))
            try:
                self._launch_anywhere(group, resizing.growth_cause(group, size, size + 1))
            except CapacityError as refused:
                self._retry_after[key] = time.monotonic() + RETRY_SECONDS
                self._record_failure(group, refused)
                return
        self._retry_after.pop(key, None)

    def replace_early(self, group: Any, state: Any) -> None:
        """Launch a replacement for an instance at risk, which stays until the replacement is in service."""
        if is_suspended(group, "Launch"):
            return
        try:
            rebalancing.begin(state, self._launch_anywhere(group, cause_of(rebalancing.started(state))))
        except CapacityError as refused:
            self._record_failure(group, refused)

    def balance_zones(self, group: Any) -> None:
        """Carry out AZRebalance: launch in the emptiest zone, terminate one of the fullest when the launched one is in
        service.
        """
        if any(is_suspended(group, process) for process in rebalancing.BALANCING):
            return
        if surplus := rebalancing.uneven(group):
            self.replace_early(group, surplus)

    def _launch_anywhere(self, group: Any, cause: str) -> Any:
        refused: CapacityError | None = None
        for offering in shape.offerings(group, shape.next_market(group)):
            try:
                return self.launch_one(group, offering, cause)
            except CapacityError as again:
                refused = refused or again
        raise refused or CapacityError(shape.NO_CAPACITY, "the group has no place to launch in")

    def _record_failure(self, group: Any, refused: CapacityError) -> None:
        cause = cause_of(_BY_DIFFERENCE)
        description = "Launching a new EC2 instance.  Status Reason: " + refused.message
        activity = self.activities.begin(key_of(group), group, description=description, cause=cause, instance=None)
        message = f"{refused.message} Launching EC2 instance failed."
        self.activities.end(activity, "Failed", message)
        messages.outcome(self.outbox, group, activity, transition=Transition.LAUNCHING, ok=False)

    # -- launching -----------------------------------------------------------------------------------------------

    def launch_one(self, group: Any, offering: Offering, cause: str) -> Any:
        """Launch one instance from the offering; hooks hold it as Pending:Wait. Raises ``CapacityError``."""
        self.shortages.require(offering)
        state = launch(group, offering)
        instance = state.instance
        self.journal.note(instance.id, state.lifecycle_state)
        description = f"Launching a new EC2 instance: {instance.id}"
        activity = self.activities.begin(key_of(group), group, description=description, cause=cause, instance=instance)
        ready = functools.partial(self._launched, group, state, activity)
        if not self.hold(group, state, Transition.LAUNCHING, activity, ready):
            self.timeline.after(self.pace.boot + _MOMENT, functools.partial(ready, Result.CONTINUE))
        return state

    def _launched(self, group: Any, state: Any, activity: dict[str, Any], result: Result) -> None:
        if state not in group.instance_states or not state.lifecycle_state.startswith("Pending"):
            return
        if result is Result.ABANDON:
            self.activities.end(activity, "Failed", "The lifecycle action was abandoned.")
            messages.outcome(self.outbox, group, activity, transition=Transition.LAUNCHING, ok=False)
            self.proceed_termination(group, state, cause_of("an instance's launch was abandoned by a lifecycle hook."))
            self.reconcile(group)
            return
        if state.lifecycle_state == "Pending:Wait":
            self.enter(state, "Pending:Proceed")
        if state.instance.state == "pending":
            later = functools.partial(self._launched, group, state, activity, result)
            self.timeline.after(_MOMENT, later)
            return
        if state.instance.state != "running":
            return
        self.enter(state, "InService")
        self.activities.end(activity, "Successful")
        messages.outcome(self.outbox, group, activity, transition=Transition.LAUNCHING, ok=True)
        for replaced in rebalancing.replaced_by(group, state):
            self.begin_termination(group, replaced, cause_of(rebalancing.reason(replaced)))
        _register(group)

    # -- terminating ---------------------------------------------------------------------------------------------

    def begin_termination(self, group: Any, state: Any, cause: str, *, hooks: bool = True) -> dict[str, Any]:
        """Take one instance out of service; terminate hooks hold it unless ``hooks`` is false. Return the activity."""
        self.waits.cancel(state.instance.id)
        rebalancing.forget(group, state)
        activity = self._termination_activity(group, state, cause)
        finish = functools.partial(self._released, group, state, activity)
        if not hooks or not self.hold(group, state, Transition.TERMINATING, activity, finish):
            self.enter(state, "Terminating")
            self._shut_down(group, state, activity)
        _register(group)
        return activity

    def proceed_termination(self, group: Any, state: Any, cause: str) -> None:
        """Take one instance out of service without running any hook."""
        self.begin_termination(group, state, cause, hooks=False)

    def _released(self, group: Any, state: Any, activity: dict[str, Any], _result: Result) -> None:
        self.enter(state, "Terminating:Proceed")
        self._shut_down(group, state, activity)

    def _shut_down(self, group: Any, state: Any, activity: dict[str, Any]) -> None:
        state.instance.terminate()
        gone = functools.partial(self._gone, group, state, activity)
        self.timeline.after(self.pace.shutdown + _MOMENT, gone)

    def _gone(self, group: Any, state: Any, activity: dict[str, Any]) -> None:
        if state in group.instance_states:
            group.instance_states.remove(state)
            self.journal.note(state.instance.id, "Terminated")
        self.activities.end(activity, "Successful")
        messages.outcome(self.outbox, group, activity, transition=Transition.TERMINATING, ok=True)
        _register(group)

    def _termination_activity(self, group: Any, state: Any, cause: str) -> dict[str, Any]:
        description = f"Terminating EC2 instance: {state.instance.id}"
        return self.activities.begin(
            key_of(group), group, description=description, cause=cause, instance=state.instance
        )

    def enter(self, state: Any, lifecycle: str) -> None:
        """Move an instance into a lifecycle state."""
        state.lifecycle_state = lifecycle
        self.journal.note(state.instance.id, lifecycle)

    # -- holding -------------------------------------------------------------------------------------------------

    def hold(
        self,
        group: Any,
        state: Any,
        transition: Transition,
        activity: dict[str, Any],
        done: Any,
        *,
        keeps: str = "",
    ) -> bool:
        """Let the hooks of a transition hold an instance; return whether there are any. ``keeps``: the lifecycle state
        in which they hold one that stays, whose root volume is replaced.
        """
        hooks = self.hooks.of(key_of(group), transition)
        if not hooks:
            return False
        self.enter(state, keeps or ("Pending:Wait" if transition is Transition.LAUNCHING else "Terminating:Wait"))
        activity["StatusCode"] = "MidLifecycleAction"
        wait = self.waits.begin(state.instance.id, key_of(group), hooks, time.monotonic(), done)
        for action in list(wait.actions):
            messages.lifecycle_action(self.outbox, group, state.instance.id, action, keeps=bool(keeps))
        return True

    # -- health --------------------------------------------------------------------------------------------------

    def expire_hooks(self) -> None:
        """Apply the default results that are due."""
        self.waits.expire(time.monotonic())

    def check_health(self, group: Any, *, hooks_for_dead: bool) -> None:
        """Replace instances that are unhealthy or no longer run, then bring the group to its desired capacity.

        An instance that EC2 terminated without the group leaves without its terminate hooks by default: this stands for
        a spot interruption whose two minutes are over. AWS does run the hook for it (the instance is dead by then);
        ``hooks_for_dead`` switches that on.
        """
        if not is_suspended(group, "HealthCheck"):
            for state in serving(group):
                if state.instance.state not in LIVE_STATES:
                    state.health_status = "Unhealthy"
        if not is_suspended(group, "ReplaceUnhealthy") and not is_suspended(group, "Terminate"):
            for state in serving(group):
                if state.health_status == "Unhealthy":
                    alive = state.instance.state in LIVE_STATES
                    cause = cause_of(_BY_USER if alive else _BY_EC2)
                    self.begin_termination(group, state, cause, hooks=alive or hooks_for_dead)
        self.reconcile(group)

    def forget(self, group: Any) -> None:
        """Drop the state of a deleted group."""
        key = key_of(group)
        for wait in self.waits.held():
            if wait.group == key:
                self.waits.cancel(wait.instance_id)
        self.hooks.forget(key)
        self.activities.forget(key)


def user_request_cause(instance_id: str, before: int, after: int) -> str:
    """Return the cause of a termination that a user requested."""
    text = f"instance {instance_id} was taken out of service in response to a user request"
    return cause_of(text + (f", shrinking the capacity from {before} to {after}." if after < before else "."))


def cause_of(text: str) -> str:
    """Return a cause as an activity shows it: time and reason."""
    return f"At {messages.timestamp()} {text}"


def _register(group: Any) -> None:
    """Let moto update load balancers once the group itself is stored."""
    backend = group.autoscaling_backend
    if backend.autoscaling_groups.get(group.name) is group:
        backend.update_attached_elbs(group.name)
        backend.update_attached_target_groups(group.name)
