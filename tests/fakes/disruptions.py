"""The record of a cluster's disruption run: the simulation's model, with calls counted and failures planned."""

from datetime import UTC, datetime, timedelta
from threading import RLock
from typing import Any

from leeward.disruption.command import Command, CommandDecision, MethodName, PlannedReplacement
from leeward.disruption.record import DisruptionRecord, LaunchedNode
from leeward.model.instance import CapacityType
from leeward.model.planning_memory import FailedCommand, RememberedNode, WantedLaunch
from simulation.aws.disruptions import SimDisruptions
from tests.fakes.calls import Calls

NOW = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)


class FakeDisruptions(Calls):
    """`records` by cluster."""

    def __init__(self) -> None:
        super().__init__()
        self._table = SimDisruptions()
        self._lock = RLock()
        self.records = self._table.records

    def read(self, cluster: str) -> DisruptionRecord | None:
        """The latest."""
        self._call("read")
        return self._table.read(cluster)

    def write(self, record: DisruptionRecord) -> DisruptionRecord | None:
        """None when another writer was faster."""
        with self._lock:
            self._call("write")
            return self._table.write(record)


def a_disruption(**more: Any) -> DisruptionRecord:
    """Two nodes become one of another group, a third one goes for good."""
    coming = PlannedReplacement(
        group="web-b", types=("m5.large",), zones=("us-east-1a",), capacity=CapacityType.SPOT, price=0.0312
    )
    commands = (
        Command(
            decision=CommandDecision.REPLACE,
            nodes=("node-a", "node-b"),
            reason="cheaper",
            replacements=(coming,),
            savings=0.1688,
            cost=4.25,
        ),
        Command(decision=CommandDecision.DELETE, nodes=("node-c",), reason="its pods fit on other nodes"),
    )
    given: dict[str, Any] = {
        "cluster": "blue",
        "number": 3,
        "method": MethodName.CONSOLIDATION,
        "began": NOW,
        "commands": commands,
        "nodes": {"node-a": "i-1", "node-b": "i-2", "node-c": "i-3"},
        "members": {"node-a": "web-a", "node-b": "web-a", "node-c": "web-b"},
        "groups": ("web-a", "web-b"),
        "orders": {"0.0": "us-east-1a/subnet-1"},
        "cooldowns": {"web-c": NOW - timedelta(minutes=3)},
        "ends": {"i-3": "gone"},
        "launched": {
            "i-9": LaunchedNode(command=0, replacement=0, group="web-b", zone="a", subnet="s", offset_by="i-9")
        },
        "retry": NOW + timedelta(minutes=1),
        "wanted": {
            "web-a": WantedLaunch(
                digest="0123", since=NOW, proofs={"4567": "node-c differs as well"}, shown={"4567": "i-3"}
            )
        },
        "seen": {
            "web-b/m5.large": RememberedNode(
                version="lt-1/2",
                user_data="cdef",
                labels={"team": "a"},
                by_zone={"us-east-1a": {"rack": "1"}},
                taints=("dedicated=a:NoSchedule",),
                allocatable={"memory": 6_000 << 20},
            )
        },
        "failed": {"89ab": FailedCommand(run=2, at=NOW, why="pod shop/a has no other place")},
    }
    return DisruptionRecord(**{**given, **more})
