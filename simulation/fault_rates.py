"""Frequency of each kind of fault."""

from dataclasses import dataclass, replace
from typing import Any

OF_KUBERNETES = (
    "kubernetes_throttled",
    "kubernetes_failed",
    "kubernetes_reset",
    "api_outages_per_hour",
    "api_hangs_per_hour",
    "api_slow_per_hour",
    "forbidden_seconds",
    "webhooks_per_hour",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """Rates of faults. They are chances of one event, one call or one instance; `per_hour` ones are what they say.

    `kill_call` kills at the n-th port call of the whole run (from 1), once; `kill_after` after its effect.
    """

    duplicate_event: float = 0
    delay_event: float = 0  # by up to three minutes
    reorder_event: float = 0  # by up to five seconds
    lose_lifecycle_event: float = 0
    lose_ended_event: float = 0  # about an execution of an upgrade that has ended badly
    kill_before: float = 0
    kill_after_call: float = 0
    slow_call: float = 0  # other invocations get their turn in between
    throttle_aws: float = 0
    lose_answer: float = 0  # the call has its effect, its answer is lost
    kubernetes_throttled: float = 0
    kubernetes_failed: float = 0
    kubernetes_reset: float = 0  # the connection breaks, half of the times after the request had its effect
    call_hangs: float = 0  # it never answers, and its function is ended by its time-out
    clock_skew_seconds: float = 0  # how far the clock of an execution environment may be off, either way
    event_skew_seconds: float = 0  # and the time that a service writes into an event
    index_lag_seconds: float = 0  # how old the table's index of open records may be
    expiry_lag_hours: float = 0  # how late the table deletes expired items
    capacity_error: float = 0  # of one launch
    zone_outages_per_hour: float = 0  # a zone without capacity for some minutes
    subnets_full_per_hour: float = 0  # others leave a subnet a handful of addresses for an hour or so
    never_joins: float = 0
    bad_image: float = 0  # of a new launch template version: none of its instances joins
    api_outages_per_hour: float = 0  # the Kubernetes API does not answer for up to five minutes
    stops_per_hour: float = 0  # an operator stops an execution
    api_hangs_per_hour: float = 0  # the Kubernetes API answers nothing for some minutes, or only lists
    api_slow_per_hour: float = 0  # it answers after up to 20 seconds
    forbidden_seconds: float = 0  # after it was away it answers 403 for as long
    token_buckets: bool = False  # EC2 and Auto Scaling limit the rate of calls, which neighbours use too
    table_outages_per_hour: float = 0  # DynamoDB refuses every call for some minutes
    queue_outages_per_hour: float = 0  # SQS delivers nothing for as long
    concurrency_outages_per_hour: float = 0  # Lambda starts no function for as long
    very_late_event: float = 0  # by one to three hours
    webhooks_per_hour: float = 0  # an admission webhook fails every eviction of one workload's pods
    kill_call: int | None = None
    kill_after: bool = False

    @classmethod
    def none(cls) -> "Faults":
        """Return rates of zero: everything works."""
        return cls()

    @classmethod
    def all(cls) -> "Faults":
        """Return rates of every kind, often enough that some hours see each."""
        return cls(
            duplicate_event=0.08,
            delay_event=0.04,
            reorder_event=0.2,
            lose_lifecycle_event=0.05,
            lose_ended_event=0.2,
            kill_before=0.003,
            kill_after_call=0.003,
            slow_call=0.05,
            throttle_aws=0.01,
            lose_answer=0.005,
            kubernetes_throttled=0.01,
            kubernetes_failed=0.01,
            kubernetes_reset=0.01,
            call_hangs=0.001,
            clock_skew_seconds=1,
            event_skew_seconds=2,
            index_lag_seconds=10,
            expiry_lag_hours=6,
            capacity_error=0.05,
            zone_outages_per_hour=0.3,
            subnets_full_per_hour=0.3,
            never_joins=0.03,
            bad_image=0.05,
            api_outages_per_hour=0.3,
            stops_per_hour=1,
        )

    def of_kubernetes(self) -> "Faults":
        """Return only the rates of the Kubernetes API."""
        return Faults(**{name: getattr(self, name) for name in OF_KUBERNETES})

    def rarer(self, times: float) -> "Faults":
        """Return the rates with those by the hour divided by `times`."""
        rates = {name: getattr(self, name) / times for name in Faults.__slots__ if name.endswith("_per_hour")}
        return replace(self, **rates)

    def without(self, name: str) -> "Faults":
        """Return the same rates without one kind: for making a failing story shorter."""
        nothing: dict[str, Any] = {name: getattr(Faults(), name)}
        return replace(self, **nothing)
