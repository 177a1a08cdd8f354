"""The disruption package: fn disruption-planner on its schedule, the state machine disruption, and the function of its
steps.

The schedule's rate is limited by the cost of idling: 8,640 decisions a month of one second each are some $0.20.
"""

from pathlib import Path

from constructs import Construct

from infra import names
from infra.alarms import Alarms
from infra.function import FunctionDefaults, FunctionShape, KubernetesAccess, LeewardFunction
from infra.rules import execution_rule
from infra.schedule import call_every
from infra.service_permissions import DISRUPTION_MACHINE
from infra.state_machine import MachineShape, call_at_deaths, machine

PLAN_EVERY = 5  # minutes
SILENT_FOR = 30  # minutes without one successful decision

MACHINE = MachineShape(
    name=names.DISRUPTION,
    definition="functions/leeward/disruption/state_machine.asl.yaml",
    permissions=DISRUPTION_MACHINE,
    alarms="disruption",
    failed="A disruption run could not go on: the execution's cause names the call. It is taken up again by itself.",
    timed_out="A disruption run ran for a day: look at the terminations that it waits for.",
)

DISRUPTION_PLANNER = FunctionShape(
    name="disruption-planner",
    handler="leeward.disruption.handler.plan_disruptions",
    description="Decides what each cluster needs now: expired, drifted, empty and underutilized nodes",
    timeout=300,
    memory=1769,  # one vCPU: it plans over a whole cluster
    access=KubernetesAccess.TAINT,
    once=True,
)

DISRUPT = FunctionShape(
    name="disrupt",
    handler="leeward.disruption.handler.disrupt",
    description="Takes the steps of disruption: validate, taint, launch, terminate, follow",
    timeout=300,
    memory=1769,
    access=KubernetesAccess.TAINT,
)


class Disruption(Construct):
    """The state machine disruption and its functions, schedule and alarms."""

    def __init__(self, scope: Construct, *, root: Path, surroundings: FunctionDefaults, alarms: Alarms) -> None:
        super().__init__(scope, "Disruption")
        self.decide = LeewardFunction(self, DISRUPTION_PLANNER, surroundings)
        self.disrupt = LeewardFunction(self, DISRUPT, surroundings)
        values = {"DisruptFunctionArn": self.disrupt.function.function_arn}
        self.machine = machine(self, MACHINE, root=root, scopes=surroundings.scopes, alarms=alarms, values=values)
        call_every(self, PLAN_EVERY, self.decide)
        # fn disruption-planner resumes a run whose execution has died; so does the minute reconciler.
        dead = execution_rule("disruption-status", "disruption", surroundings.scopes.machine(names.DISRUPTION))
        call_at_deaths(self, "EndedDisruptions", dead, self.decide, retries=0, minutes=PLAN_EVERY)
        alarms.stopped(
            "disruption-planner-stopped",
            self.decide.function,
            SILENT_FOR,
            "No expired, drifted, empty or underutilized node is found: look at the log of leeward-disruption-planner.",
        )
