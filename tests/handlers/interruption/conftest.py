"""The real handler over a deployment of fakes."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from leeward.interruption import handler
from tests.fakes.builders import GROUP, a_group, a_node, a_policy, an_instance, our_hook, policies
from tests.fakes.system import FakeSystem
from tests.truthful_events import held_against_the_truth

SENT = 1772445600000  # 2026-03-02T10:00:00Z in milliseconds


@pytest.fixture(autouse=True)
def _truthful(monkeypatch):
    """Every Event of every message is true when it is written."""
    with held_against_the_truth(monkeypatch):
        yield


class Queue:
    """Delivers bodies to the handler and remembers what it said; message ids are m0, m1 …"""

    def __init__(self, system: FakeSystem, capsys: pytest.CaptureFixture[str]) -> None:
        self.system = system
        self.receives = 1
        self._capsys = capsys
        self.lines: list[dict[str, Any]] = []

    def happens(self, name: str, *instances: str) -> None:
        """What a message of this name announces has come about on AWS."""
        for instance in instances or ("i-0abc",):
            if name == "state_change":
                self.system.instances.set_state(instance, "stopping")
            elif name.startswith("asg_terminate"):
                self.system.groups.begin_terminating(GROUP, instance)
            elif name == "capacity_reservation":
                self.system.instances.put(replace(an_instance(instance), reservation="cr-0abc"))
            elif name == "scheduled_change":
                self.system.instances.schedule(instance)

    def deliver(self, *bodies: str) -> list[str]:
        """The ids of the records that come back."""
        records = [
            {
                "messageId": f"m{number}",
                "receiptHandle": f"r{number}",
                "body": body,
                "attributes": {"SentTimestamp": str(SENT), "ApproximateReceiveCount": str(self.receives)},
            }
            for number, body in enumerate(bodies)
        ]
        answer = handler.handle({"Records": records}, None)
        assert set(answer) == {"batchItemFailures"}
        self.lines += [json.loads(line) for line in self._capsys.readouterr().out.splitlines()]
        return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]

    @property
    def log(self) -> Sequence[dict[str, Any]]:
        """One line a record."""
        return [line for line in self.lines if "messageId" in line]

    def metric(self, name: str) -> float:
        """The sum of a metric over all batches."""
        return sum(sum(line[name]) for line in self.lines if name in line)


def a_system(**changes: Any) -> FakeSystem:
    """One cluster with one selected group, our terminate hook on it, and the node of i-0abc."""
    defaults = {
        "instances": [an_instance()],
        "groups": [a_group(GROUP, "i-0abc")],
        "hooks": [our_hook()],
        "nodes": [a_node()],
        "written": policies(a_policy(hooks=("wait-for-node",))),
    }
    return FakeSystem(**{**defaults, **changes})


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Queue]:
    """`connect(nodes=[…])`: the handler's ports are those of this system."""

    def build(**changes: Any) -> Queue:
        system = a_system(**changes)
        monkeypatch.setattr(handler, "ports", lambda _context: system.ports)
        return Queue(system, capsys)

    return build
