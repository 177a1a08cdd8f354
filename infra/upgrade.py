"""The upgrade package: the state machines node-group-upgrade and managed-node-group-upgrade, and the function that runs
the steps of both."""

from pathlib import Path

from constructs import Construct

from infra import names
from infra.alarms import Alarms
from infra.function import FunctionDefaults, FunctionShape, KubernetesAccess, LeewardFunction
from infra.rules import execution_rule
from infra.service_permissions import UPGRADE_MACHINE
from infra.state_machine import MachineShape, call_at_deaths, machine

MACHINE = MachineShape(
    name=names.UPGRADE,
    definition="functions/leeward/upgrade/state_machine.asl.yaml",
    permissions=UPGRADE_MACHINE,
    alarms="upgrade",
    failed="A node group upgrade has stopped: the execution's error and cause say why and what to do; started again it "
    "goes on.",
    timed_out="A node group upgrade ran for thirty days: look at what it waits for; started again it goes on.",
)
MANAGED_MACHINE = MachineShape(
    name=names.MANAGED_UPGRADE,
    definition="functions/leeward/upgrade/managed/state_machine.asl.yaml",
    permissions=UPGRADE_MACHINE,
    alarms="managed-upgrade",
    failed="The upgrade of a managed node group has stopped: the execution's error and cause say why, in EKS' words "
    "where it is EKS that failed, and what to do; started again it goes on.",
    timed_out="The upgrade of a managed node group ran for thirty days: look at what EKS waits for; started again it "
    "goes on.",
)

TOO_LATE = 5  # minutes, for an event that could not be delivered: the minute reconciler has run several times by then

UPGRADE = FunctionShape(
    name="upgrade",
    handler="leeward.upgrade.handler.upgrade",
    description="Takes the steps of node-group-upgrade and of managed-node-group-upgrade",
    timeout=300,
    memory=1769,  # one vCPU: it plans over a whole cluster
    access=KubernetesAccess.TAINT,
)


class Upgrade(Construct):
    """The state machines of upgrades and their function, rule and alarms."""

    def __init__(self, scope: Construct, *, root: Path, surroundings: FunctionDefaults, alarms: Alarms) -> None:
        super().__init__(scope, "Upgrade")
        self.function = LeewardFunction(self, UPGRADE, surroundings)
        values = {"UpgradeFunctionArn": self.function.function.function_arn}
        scopes = surroundings.scopes
        self.machine = machine(self, MACHINE, root=root, scopes=scopes, alarms=alarms, values=values)
        managed = Construct(self, "Managed")
        self.managed_machine = machine(managed, MANAGED_MACHINE, root=root, scopes=scopes, alarms=alarms, values=values)
        # fn upgrade reverts at once the changes of a dead execution in its group; so does the minute reconciler.
        dead = execution_rule("upgrade-status", "an upgrade", *map(scopes.machine, names.UPGRADES))
        call_at_deaths(self, "DeadUpgrades", dead, self.function, retries=2, minutes=TOO_LATE)
