"""The termination package: the state machine, the two functions that run its steps, and the minute reconciler."""

from pathlib import Path

from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

from infra import names
from infra.alarms import Alarms, OwnMetric, Threshold
from infra.function import FunctionDefaults, FunctionShape, KubernetesAccess, LeewardFunction
from infra.schedule import call_every
from infra.service_permissions import STATE_MACHINE
from infra.state_machine import MachineShape, machine

MACHINE = MachineShape(
    name=names.TERMINATION,
    definition="functions/leeward/termination/state_machine.asl.yaml",
    permissions=STATE_MACHINE,
    alarms="termination",
    failed="A node could not be drained or terminated: the execution's error and cause name what blocked it.",
    timed_out="A termination ran longer than any hook can wait: look at its last steps; the reconciler restarts it.",
)
RECONCILE_EVERY = 1  # minutes
RECONCILER_SILENT_FOR = 5  # minutes

TERMINATE = FunctionShape(
    name="terminate",
    handler="leeward.termination.handler.terminate",
    description="Takes the steps of node-termination that speak to AWS alone",
    timeout=45,
    memory=256,
)
RECONCILER = FunctionShape(
    name="reconciler",
    handler="leeward.reconcile.handler.reconcile",
    description="Finishes what no Catch can, keeps finalizers, replaces unhealthy nodes",
    timeout=55,
    memory=512,
    access=KubernetesAccess.TAINT,
    once=True,
)


def drain_shape(concurrency: int | None) -> FunctionShape:
    """Return the shape of fn drain; its cap keeps a burst of terminations from flooding the API server, the state
    machine retries.
    """
    return FunctionShape(
        name="drain",
        handler="leeward.termination.drain_handler.drain",
        description="Takes the steps of node-termination that speak to Kubernetes",
        timeout=55,
        memory=512,
        access=KubernetesAccess.ACT,
        concurrency=concurrency,
    )


def _each_minute(name: str) -> OwnMetric:
    return OwnMetric(service="reconcile", name=name, statistic="Maximum")


ATTENTION = (
    (
        "drains-blocked-long",
        _each_minute("DrainsBlockedLong"),
        5,
        "Nodes have been draining for an hour without a pod that moved: the log of leeward-reconciler names them, "
        "leeward blockers NODE what holds them.",
    ),
    (
        "hooks-near-their-end",
        _each_minute("HooksNearTheirEnd"),
        5,
        "Lifecycle hooks are heartbeaten for two hours more at most, then Auto Scaling ends the instances with the "
        "pods that are left: remove what blocks their drains.",
    ),
    (
        "pause-forgotten",
        _each_minute("PausesForgotten"),
        60,
        "A cluster or a group has been paused for three days without an end: leeward resume, or pause it with --for.",
    ),
)


class Termination(Construct):
    """The state machine node-termination and its functions, rules and alarms."""

    def __init__(
        self, scope: Construct, *, root: Path, table: dynamodb.Table, surroundings: FunctionDefaults, alarms: Alarms
    ) -> None:
        super().__init__(scope, "Termination")
        self.terminate = LeewardFunction(self, TERMINATE, surroundings)
        self.drain = LeewardFunction(self, drain_shape(surroundings.settings.drain_concurrency), surroundings)
        self.reconcile = LeewardFunction(self, RECONCILER, surroundings)
        values = {
            "TerminateFunctionArn": self.terminate.function.function_arn,
            "DrainFunctionArn": self.drain.function.function_arn,
            "TableName": table.table_name,
        }
        self.machine = machine(self, MACHINE, root=root, scopes=surroundings.scopes, alarms=alarms, values=values)
        call_every(self, RECONCILE_EVERY, self.reconcile)
        alarms.stopped(
            "reconciler-stopped",
            self.reconcile.function,
            RECONCILER_SILENT_FOR,
            "Nothing finishes lost runs and unanswered hooks any more, unhealthy nodes stay, and Nodes of vanished "
            "instances keep our finalizer: look at the log of leeward-reconciler.",
        )
        for name, metric, minutes, description in ATTENTION:
            alarms.counted(name, metric, minutes, Threshold(at_least=1), description)
