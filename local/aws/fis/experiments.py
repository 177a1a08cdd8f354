"""One experiment: its targets are looked up, its actions run in their order, and it ends by itself or is stopped.

A thread of its own plays it, as it waits. What an action has asked EC2 for happens although the experiment is over by
then, or is stopped: AWS FIS has no way to take back an interruption.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol
from uuid import uuid4

import boto3

from local.aws.fis.errors import ActionFailed
from local.aws.fis.targets import resolved
from local.aws.fis.templates import ALARM

logger = logging.getLogger("local.aws.fis")
TICK, ALARM_TICK = 0.1, 1.0  # seconds between two looks
OVER = frozenset({"completed", "stopped", "failed"})


class Fault(Protocol):
    """Effect of one action on its targets."""

    def begin(self) -> timedelta:
        """Cause it; return how long the action lasts. Raises ActionFailed."""
        ...

    def end(self, *, stopped: bool) -> None:
        """Remove it, at the end of the action or because the experiment is stopped."""
        ...


Faults = Callable[[Mapping[str, Any], Mapping[str, Sequence[str]]], Fault]  # action, ARNs by the action's target key


@dataclass(slots=True, kw_only=True)
class ActionRun:
    """Run of one action. `due`: monotonic time of its end."""

    asked: Mapping[str, Any]
    status: str = "pending"
    reason: str = "Initial state"
    fault: Fault | None = None
    due: float = 0.0
    began: float | None = None
    ended: float | None = None

    def shown(self) -> dict[str, Any]:
        """Return the element of `actions`."""
        times = {"startTime": self.began, "endTime": self.ended}
        state = {"status": self.status, "reason": self.reason}
        return {**self.asked, "state": state, **{name: at for name, at in times.items() if at is not None}}

    def begin(self, fault: Fault) -> None:
        """Start the action. Raises ActionFailed."""
        self.fault, self.began = fault, time.time()
        self.status, self.reason = "running", "Action was started."
        self.due = time.monotonic() + fault.begin().total_seconds()

    def end(self, status: str, reason: str) -> None:
        """End the action, whether it has started or not."""
        if self.status == "running" and self.fault is not None:
            self.fault.end(stopped=status != "completed")
        self.status, self.reason, self.ended = status, reason, time.time()


@dataclass(kw_only=True)
class Experiment:
    """Experiment of a template, as it was when the experiment started."""

    template: Mapping[str, Any]
    arn_of: Callable[[str], str]
    tags: Mapping[str, str]
    skip_all: bool = False
    id: str = field(default_factory=lambda: f"EXP{uuid4().hex[:15]}")
    created: float = field(default_factory=time.time)
    status: str = "initiating"
    reason: str = "Experiment is initiating."
    error: str = ""
    ended: float | None = None
    runs: dict[str, ActionRun] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.runs = {name: ActionRun(asked=asked) for name, asked in self.template["actions"].items()}

    def start(self, region: str, faults: Faults) -> None:
        """Play it in a thread."""
        threading.Thread(target=self._play, args=(region, faults), daemon=True, name=f"fis-{self.id}").start()

    def stop(self) -> None:
        """Ask for the end: the actions that run are ended, the others never start."""
        self.status, self.reason = "stopping", "Experiment is stopping."
        self._stop.set()

    def shown(self) -> dict[str, Any]:
        """Return the element `experiment` of an answer."""
        copied = ("roleArn", "targets", "stopConditions", "logConfiguration")
        options = {**self.template["experimentOptions"], "actionsMode": "skip-all" if self.skip_all else "run-all"}
        state: dict[str, Any] = {"status": self.status, "reason": self.reason}
        if self.error:
            state["error"] = {"accountId": self.template["roleArn"].split(":")[4], "code": self.error}
        return {
            **{name: self.template[name] for name in copied if name in self.template},
            **self.summary(),
            "state": state,
            "actions": {name: run.shown() for name, run in self.runs.items()},
            "startTime": self.created,
            **({"endTime": self.ended} if self.ended is not None else {}),
            "experimentOptions": options,
            "targetAccountConfigurationsCount": 0,
        }

    def summary(self) -> dict[str, Any]:
        """Return the element of ListExperiments."""
        return {
            "id": self.id,
            "arn": self.arn_of(f"experiment/{self.id}"),
            "experimentTemplateId": self.template["id"],
            "state": {"status": self.status, "reason": self.reason},
            "creationTime": self.created,
            "tags": dict(self.tags),
        }

    def _play(self, region: str, faults: Faults) -> None:
        try:
            found = self._resolve(region)
            self.status, self.reason = "running", "Experiment is running."
            self._run(region, found, faults)
        except ActionFailed as failed:
            self._fail(failed.code, str(failed))
        except Exception as broken:
            logger.exception("experiment %s failed", self.id)
            self._fail("InternalError", repr(broken))

    def _resolve(self, region: str) -> dict[str, Sequence[str]]:
        """Look up the targets; an empty one fails the experiment, or skips its actions where the template says so."""
        found: dict[str, Sequence[str]] = {}
        for name, target in (self.template.get("targets") or {}).items():
            try:
                found[name] = resolved(target, region)
            except ActionFailed as failed:
                skips = self.template["experimentOptions"]["emptyTargetResolutionMode"] == "skip"
                if failed.code != "InvalidTarget" or not skips:
                    raise
        return found

    def _run(self, region: str, found: Mapping[str, Sequence[str]], faults: Faults) -> None:
        looks = 0.0
        while any(run.status in {"pending", "running"} for run in self.runs.values()):
            for name, run in self.runs.items():
                if run.status == "pending" and self._its_turn(run):
                    self._begin(name, run, found, faults)
                elif run.status == "running" and time.monotonic() >= run.due:
                    run.end("completed", "Action was completed.")
            if time.monotonic() >= looks and self._alarmed(region):
                self.stop()
            looks = max(looks, time.monotonic() + ALARM_TICK) if time.monotonic() >= looks else looks
            if self._stop.wait(TICK):
                self._end_all("stopped", "Action was stopped.")
                self._close("stopped", "Experiment was stopped.")
                return
        self._close("completed", "Experiment completed.")

    def _its_turn(self, run: ActionRun) -> bool:
        return all(self.runs[name].status in {"completed", "skipped"} for name in run.asked.get("startAfter") or ())

    def _begin(self, name: str, run: ActionRun, found: Mapping[str, Sequence[str]], faults: Faults) -> None:
        named = run.asked.get("targets") or {}
        if self.skip_all or not set(named.values()) <= set(found):
            run.end("skipped", "Action was skipped.")
            return
        try:
            run.begin(faults(run.asked, {key: found[target] for key, target in named.items()}))
        except ActionFailed as failed:
            run.status, run.reason = "failed", str(failed)
            raise ActionFailed(failed.code, f"Action {name} failed: {failed}") from failed

    def _alarmed(self, region: str) -> bool:
        """Return whether an alarm of a stop condition is in the state ALARM."""
        names = [one["value"].rpartition(":alarm:")[2] for one in self.template["stopConditions"] if _watches(one)]
        if not names:
            return False
        answer = boto3.client("cloudwatch", region_name=region).describe_alarms(AlarmNames=names)
        return any(alarm["StateValue"] == "ALARM" for alarm in answer["MetricAlarms"])

    def _fail(self, code: str, reason: str) -> None:
        self.error = code
        self._end_all("stopped", "Action was stopped.")
        self._close("failed", reason)

    def _end_all(self, status: str, reason: str) -> None:
        for run in self.runs.values():
            if run.status == "running":
                run.end(status, reason)
            elif run.status == "pending":
                run.end("cancelled", "Action was cancelled.")

    def _close(self, status: str, reason: str) -> None:
        self.ended = time.time()
        self.status, self.reason = status, reason


def _watches(condition: Mapping[str, Any]) -> bool:
    return bool(condition["source"] == ALARM)
