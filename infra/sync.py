"""The sync package: every five minutes it sets our terminate hook on the selected groups, so that no Terraform change
is needed first, subnet labels on nodes, and the facts that a placement needs in the table."""

from constructs import Construct

from infra.alarms import Alarms, OwnMetric, Threshold
from infra.function import FunctionDefaults, FunctionShape, KubernetesAccess, LeewardFunction
from infra.schedule import call_every

EVERY = 5  # minutes
SILENT_FOR = 15  # minutes without one successful run
STALE_FOR, STALE_RUNS = 20, 3  # minutes, and the runs in them that find facts out of date: one failed call is no alarm

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
    """fn sync with its schedule and its alarms."""

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
        alarms.counted(
            "facts-stale",
            OwnMetric(service="sync", name="FactsOutOfDate", statistic="SampleCount"),
            STALE_FOR,
            Threshold(at_least=STALE_RUNS),
            "Prices, instance types, images or other facts are out of date, so placements are computed from old ones: "
            "the warnings in the log of leeward-sync say why.",
        )
