"""The disruption room: fn decide on its schedule, the state machine disruption-round, and the function of its steps.

The rate of the schedule is what idling may cost: 8,640 decisions a month of one second each are some $0.20."""

from pathlib import Path

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from constructs import Construct

from infra import names
from infra.alarms import Alarms
from infra.function import FunctionShape, KubernetesAccess, LeewardFunction, Surroundings
from infra.rules import round_rule
from infra.schedule import call_every
from infra.service_permissions import ROUND_MACHINE
from infra.state_machine import MachineShape, machine

DECIDE_EVERY = 5  # minutes
SILENT_FOR = 30  # minutes without one good decision

MACHINE = MachineShape(
    name=names.ROUND_MACHINE,
    definition="functions/leeward/disruption/state_machine.asl.json",
    permissions=ROUND_MACHINE,
    alarms="round",
    failed="A disruption round could not go on: the execution's cause names the call. It is taken up again by itself.",
    timed_out="A disruption round ran for a day: look at the terminations that it waits for.",
)

DECIDE = FunctionShape(
    name="decide",
    handler="leeward.disruption.handler.decide",
    room="disruption",
    description="Decides what each cluster needs now: expired, drifted, empty and wasteful nodes",
    timeout=300,
    memory=1769,  # one vCPU: it plans over a whole cluster
    access=KubernetesAccess.ACT,
    once=True,
)

DISRUPT = FunctionShape(
    name="disrupt",
    handler="leeward.disruption.handler.disrupt",
    room="disruption",
    description="Takes the steps of disruption-round: validate, mark, launch, tell, follow",
    timeout=300,
    memory=1769,
    access=KubernetesAccess.ACT,
)


class Disruption(Construct):
    """disruption-round and what belongs to it."""

    def __init__(self, scope: Construct, *, root: Path, surroundings: Surroundings, alarms: Alarms) -> None:
        super().__init__(scope, "Disruption")
        self.decide = LeewardFunction(self, DECIDE, surroundings)
        self.disrupt = LeewardFunction(self, DISRUPT, surroundings)
        values = {"DisruptFunctionArn": self.disrupt.function.function_arn}
        self.machine = machine(self, MACHINE, root=root, scopes=surroundings.scopes, alarms=alarms, values=values)
        call_every(self, DECIDE_EVERY, self.decide)
        self._on_dead_rounds(surroundings)
        alarms.stopped(
            "decide-stopped",
            self.decide.function,
            SILENT_FOR,
            "Nothing looks for expired, drifted, empty and wasteful nodes: look at the log of leeward-decide.",
        )

    def _on_dead_rounds(self, surroundings: Surroundings) -> None:
        """fn decide takes up a round whose execution ended where no Catch could do anything; the sweep does as well."""
        rule = round_rule(surroundings.scopes.machine(names.ROUND_MACHINE))
        events.Rule(
            self,
            "DeadRounds",
            rule_name=names.rule(rule.name),
            description=rule.description,
            event_pattern=events.EventPattern(
                source=rule.pattern["source"],
                detail_type=rule.pattern["detail-type"],
                detail=rule.pattern["detail"],
            ),
        ).add_target(
            targets.LambdaFunction(self.decide.function, retry_attempts=0, max_event_age=Duration.minutes(DECIDE_EVERY))
        )
