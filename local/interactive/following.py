"""Following of a node from an event to its end: a line for each change, with the seconds since the event."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from leeward.model.counts import count_of
from leeward.model.termination import Outcome
from local import fleet
from local.demo import ledger, scenario
from local.interactive.events import Event
from local.interactive.targets import Target
from local.stack import LocalStack

POLL_SECONDS = 0.5
CLAIMED_SECONDS = 60  # a message that returned to the queue comes again after that
END_SECONDS = 900


@dataclass(kw_only=True)
class Follower:
    """Observer of one node. `before`: the group's instances when the event was sent; `began`: that moment, of the
    monotonic clock.
    """

    stack: LocalStack
    target: Target
    event: Event
    before: frozenset[str]
    began: float
    _shown: str = ""
    _arrived: set[str] = field(default_factory=set)
    _taken: bool = False
    _opened: bool = False  # a closed record may be that of an earlier event on the same node

    def follow(self) -> int:
        """Print each change until the node is gone and its group complete. Return 0 then, 1 when it stays in service or
        takes longer than END_SECONDS.
        """
        while True:
            record = ledger.termination(self.stack, self.target.instance)
            node = ledger.nodes(self.stack).get(self.target.instance)
            self._show(_line(record, node, self.stack))
            self._show_arrivals(record)
            ended = self._ended(record, node)
            if ended is not None:
                return ended
            self._take()
            time.sleep(POLL_SECONDS)

    def say(self, line: str) -> None:
        """Print a line with the seconds since the event."""
        print(f"{time.monotonic() - self.began:6.1f} s  {line}", flush=True)

    def _show(self, line: str) -> None:
        if line != self._shown:
            self._shown = line
            self.say(f"{self.target.short}: {line}")

    def _show_arrivals(self, record: ledger.Termination | None) -> None:
        for instance in sorted(self._replacements(record) - self._arrived):
            node = ledger.nodes(self.stack).get(instance)
            if node is not None and scenario.is_ready(node):
                self._arrived.add(instance)
                self.say(f"{ledger.short(str(node['metadata']['name']))}: Ready, the replacement ({instance})")

    def _replacements(self, record: ledger.Termination | None) -> set[str]:
        """Return what Leeward has launched for this node, or what the group has launched since by itself."""
        if not self.event.replaced:
            return set()
        if record is not None and record.launched:
            return set(record.launched)
        return set() if record is None or record.status != "closed" else self._members() - self.before

    def _members(self) -> set[str]:
        return {str(member["InstanceId"]) for member in fleet.instances_of(self.stack, self.target.group)}

    def _ended(self, record: ledger.Termination | None, node: Mapping[str, Any] | None) -> int | None:
        elapsed = time.monotonic() - self.began
        self._opened = self._opened or (record is not None and record.status != "closed")
        if record is not None and record.status == "closed":
            if self._opened and record.outcome != Outcome.TERMINATED:
                self.say(f"{self.target.short} is in service again: {', '.join(record.blocked_by) or record.outcome}")
                return 1
            desired, serving = ledger.group_size(self.stack, self.target.group)
            if record.outcome == Outcome.TERMINATED and node is None and self._complete(serving, desired):
                self.say(f"done: {self.target.group} has {serving} of {desired} instances in service")
                return 0
        if not self._opened and elapsed > CLAIMED_SECONDS:
            self.say("Leeward has not taken it up: `leeward doctor` names the reason")
            return 1
        if elapsed > END_SECONDS:
            self.say("not followed any longer: `leeward blockers` names what it waits for")
            return 1
        return None

    def _complete(self, serving: int, desired: int) -> bool:
        """Return whether the replacement is there. Other events may change the group at the same time."""
        return not self.event.replaced or bool(self._arrived) or serving >= desired

    def _take(self) -> None:
        """Terminate the instance when the notice has run out, as EC2 does."""
        limit = self.event.minutes
        if limit is None or self._taken or time.monotonic() - self.began < limit * 60:
            return
        self._taken = True
        self.say(f"the {limit:.0f} minutes are over: EC2 takes {self.target.instance}")
        self.stack.client("ec2").terminate_instances(InstanceIds=[self.target.instance])


def _line(record: ledger.Termination | None, node: Mapping[str, Any] | None, stack: LocalStack) -> str:
    if record is None:
        return "cordoned" if node is not None and ledger.is_tainted(node) else "in service"
    if node is None:
        return f"gone, {count_of(record.evicted, 'pod')} evicted"
    pods = ledger.pods_by_node(stack).get(str(node["metadata"]["name"]), 0)
    draining = "draining" in record.times and "drained" not in record.times  # after a spot warning: while terminating
    blocked = f", waits for {'; '.join(record.blocked_by)}" if record.blocked_by and draining else ""
    phase = "draining" if draining else record.phase
    return f"{phase}, {pods} pod{'' if pods == 1 else 's'} on it{blocked}"
