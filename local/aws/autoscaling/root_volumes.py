"""Instance refresh with the strategy ReplaceRootVolume: instances stay, and are rebooted with another root volume.

moto has none. One instance after the other goes through the lifecycle states that Auto Scaling's user guide names; the
terminate hooks hold it before the reboot, the launch hooks after it. Replacements never fail here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from local.aws.autoscaling.engine import Engine, key_of
from local.aws.autoscaling.hooks import Result, Transition
from local.aws.autoscaling.shape import REPLACING_STATES

REPLACE_ROOT_VOLUME = "ReplaceRootVolume"
BEGUN, HELD, PROCEEDS, REPLACED = REPLACING_STATES


def replace_root_volumes(engine: Engine, group: Any, refresh: dict[str, Any]) -> None:
    """Replace the root volumes of all instances in service, one after the other, until the refresh is cancelled."""
    _next(engine, group, refresh, [state for state in group.instance_states if state.lifecycle_state == "InService"])


def _next(engine: Engine, group: Any, refresh: dict[str, Any], left: list[Any]) -> None:
    if refresh["Status"] != "InProgress":
        return
    if not left:
        refresh.update(Status="Successful", PercentageComplete=100, EndTime=datetime.now(UTC))
        return
    state, more = left[0], functools.partial(_next, engine, group, refresh, left[1:])
    description = f"Replacing root volume of EC2 instance: {state.instance.id}"
    activity = engine.activities.begin(
        key_of(group), group, description=description, cause="At an instance refresh.", instance=state.instance
    )
    engine.enter(state, BEGUN)
    proceed = functools.partial(_proceed, engine, group, state, activity, more)
    if not engine.hold(group, state, Transition.TERMINATING, activity, proceed, keeps=HELD):
        proceed(Result.CONTINUE)


def _proceed(
    engine: Engine, group: Any, state: Any, activity: dict[str, Any], more: Callable[[], None], _result: Result
) -> None:
    engine.enter(state, PROCEEDS)
    state.instance.reboot()
    engine.timeline.after(engine.pace.boot, functools.partial(_replaced, engine, group, state, activity, more))


def _replaced(engine: Engine, group: Any, state: Any, activity: dict[str, Any], more: Callable[[], None]) -> None:
    if state not in group.instance_states or state.lifecycle_state != PROCEEDS:
        return
    engine.enter(state, REPLACED)
    serve = functools.partial(_serve, engine, state, activity, more)
    if not engine.hold(group, state, Transition.LAUNCHING, activity, serve, keeps="Pending:Wait"):
        serve(Result.CONTINUE)


def _serve(engine: Engine, state: Any, activity: dict[str, Any], more: Callable[[], None], _result: Result) -> None:
    engine.enter(state, "InService")
    engine.activities.end(activity, "Successful")
    more()
