"""The sync package: every five minutes it sets our terminate hook on the selected groups, so that no Terraform change
is needed first, subnet labels on nodes, and the facts that a placement needs in the table."""

from constructs import Construct

from infra.alarms import Alarms
from infra.function import FunctionDefaults, FunctionShape, KubernetesAccess, LeewardFunction
from infra.schedule import call_every

EVERY = 5  # minutes
SILENT_FOR = 15  # minutes without one successful run

SHAPE = FunctionShape(
    name="sync",
    handler="leeward.sync.handler.handle",
    description="Keeps terminate hooks on groups, subnet labels on nodes, and facts for placement in the table",
    timeout=120,
    memory=512,
    access=KubernetesAccess.TAINT,
    once=True,
)


class Sync(Construct):
    """fn sync with its schedule and its alarm."""

    def __init__(self, scope: Construct, *, surroundings: FunctionDefaults, alarms: Alarms) -> None:
        super().__init__(scope, "Sync")
        self.function = LeewardFunction(self, SHAPE, surroundings)
        call_every(self, EVERY, self.function)
        alarms.stopped(
            "sync-stopped",
            self.function.function,
            SILENT_FOR,
            "Leeward's hooks are not kept in place: new groups lose nodes undrained. Look at the log of leeward-sync.",
        )
