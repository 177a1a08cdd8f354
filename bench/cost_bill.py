"""Bill for the counted usage, as on a month's invoice. Prices: AWS's list for us-east-1 without any free allowance,
but where `free_requests` names SQS's first requests of a month, which cost nothing in every account, without an end.

Step Functions Standard by state transitions; Lambda on arm64 by requests and GB-seconds; SQS by requests; EventBridge
by custom events; DynamoDB on demand by request units.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

TRANSITION = 0.025 / 1_000
LAMBDA_REQUEST = 0.20 / 1_000_000
LAMBDA_GB_SECOND = 0.0000133334
SQS_REQUEST = 0.40 / 1_000_000
SQS_FREE = 1_000_000  # requests of an account in a month (Amazon SQS pricing)
CUSTOM_EVENT = 1.00 / 1_000_000
TABLE_WRITE = 0.625 / 1_000_000  # a unit is 1 KB
TABLE_READ = 0.125 / 1_000_000  # a unit is 4 KB, read with strong consistency
REQUESTS_A_MESSAGE = 3  # sent, received, deleted
WRITE_UNITS = 3  # of one write of a record, which has some 2 to 3 KB; rounded to the expensive side

# MB, as infra/ deploys them
MEMORY: Mapping[str, int] = {
    "interruption": 512,
    "drain": 512,
    "terminate": 256,
    "notifications": 256,
    "reconciler": 512,
    "sync": 512,
    "disruption-planner": 1769,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """Usage counted for one node, or for an idle month. `milliseconds` by function, as Lambda bills them;
    `free_requests` of SQS that nothing else in the account has used.
    """

    transitions: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    milliseconds: Counter[str] = field(default_factory=Counter)
    messages: int = 0
    polls: int = 0
    free_requests: int = 0
    events: int = 0
    writes: int = 0
    reads: int = 0

    @property
    def lines(self) -> Mapping[str, float]:
        """Dollars by billed item."""
        gb_seconds = sum(ms / 1000 * MEMORY[name] / 1024 for name, ms in self.milliseconds.items())
        return {
            "transitions": self.transitions * TRANSITION,
            "Lambda": gb_seconds * LAMBDA_GB_SECOND + self.calls.total() * LAMBDA_REQUEST,
            "queue": max(self.messages * REQUESTS_A_MESSAGE + self.polls - self.free_requests, 0) * SQS_REQUEST,
            "events": self.events * CUSTOM_EVENT,
            "table": self.writes * WRITE_UNITS * TABLE_WRITE + self.reads * TABLE_READ,
        }

    @property
    def dollars(self) -> float:
        """Total in dollars."""
        return sum(self.lines.values())

    def summary(self) -> str:
        """Return counts, then dollars, in one line."""
        calls = ", ".join(f"{name} {count}" for name, count in sorted(self.calls.items()))
        seconds = sum(self.milliseconds.values()) / 1000
        parts = ", ".join(f"{name} ${dollars:.6f}" for name, dollars in self.lines.items() if dollars)
        counted = f"{self.transitions} transitions, {self.calls.total()} calls ({calls}), {seconds:.1f} s billed"
        return f"{counted}, {self.writes} writes, {self.reads} reads: ${self.dollars:.5f} ({parts})"
