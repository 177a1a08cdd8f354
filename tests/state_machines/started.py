"""Executions of any of the product's machines, from any of their states, with functions that the test plays."""

import json
from random import Random

from leeward.disruption import steps as disruption_steps
from leeward.disruption.run import DisruptionRun
from leeward.termination import drain, steps
from leeward.termination.run import Run
from leeward.upgrade.managed.steps import STEPS as MANAGED_STEPS
from leeward.upgrade.run import UpgradeRun
from leeward.upgrade.steps import STEPS as UPGRADE_STEPS
from leeward.workflow.steps import take_step
from simulation.definitions import definitions
from simulation.invocations import Ended
from simulation.machine import StateMachine
from simulation.timeline import Timeline

LONGEST = 7 * 86400.0
STEPS = {
    "terminate": (steps.STEPS, Run.from_json),
    "drain": (drain.STEPS, Run.from_json),
    "upgrade": ({**UPGRADE_STEPS, **MANAGED_STEPS}, UpgradeRun.from_json),
    "disrupt": (disruption_steps.STEPS, DisruptionRun.from_json),
}


def executed(machine, given, answer, *, at="", name="console", pause=""):
    """How an execution ended. `answer(payload)` gives each end of a function; `at`: the state to start at; `pause`: the
    error of the write that publishes a task token, as from a table that refuses it.
    """
    definition = definitions()[machine]
    timeline, ends = Timeline(), []

    def invoke(_function, payload, done):
        json.dumps(payload)
        end = answer(payload)
        if end is not None:  # otherwise the function never answers
            timeline.after(0.1, lambda: done(end), "answers")

    runner = StateMachine(
        {**definition, "StartAt": at or definition["StartAt"]},
        timeline,
        Random(1),
        invoke=invoke,
        pause=lambda _: pause,
        ended=ends.append,
    )
    runner.start(name, given)
    timeline.run_until(timeline.now() + LONGEST)
    (execution,) = ends
    return execution


def by_product(system, payload, function):
    """The end of the product's own step, on fakes."""
    known, parse = STEPS[function]
    try:
        return Ended(result=take_step(payload, known, parse, system.ports).to_json())
    except Exception as error:  # noqa: BLE001  (Lambda answers with whatever the function raised)
        return Ended(error=type(error).__name__, cause=str(error)).reported()
