"""Ports to the outside, as small Protocols: the seam at which Lambda, the simulation and tests differ.

`adapters/wiring.py` alone builds the real ones. Every method is idempotent or says what repeats it; each may raise
`RetryableError` (call again later) and `AccessDeniedError`. The types of arguments and answers are imported for the
type checker alone, so that a function's cold start does not load types it never uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol, Self

from leeward.model import well_known
from leeward.ports_cluster import EvictionRefusedError, Kubernetes
from leeward.ports_facts import Catalog, KnownNodegroups, LaunchSources, Network, Nodegroups, PriceList
from leeward.time_budget import BoundedClusters, TimeBudget

if TYPE_CHECKING:
    from leeward.model.group import Group, HookResult, LifecycleHook, ScalingActivity
    from leeward.model.impairment import Impairment
    from leeward.model.instance import Instance
    from leeward.model.seen import Seen
    from leeward.model.termination import Cause, LaunchPlan, Outcome, Replacement, Subject, TerminationRecord
    from leeward.policy.document import ClusterPolicies
    from leeward.ports_balancing import LoadBalancers
    from leeward.ports_disruption import RoundExecutions, Rounds
    from leeward.ports_sizes import Maxima
    from leeward.ports_upgrade import (
        Alarms,
        GroupChanges,
        ManagedUpdates,
        ServiceLimits,
        Templates,
        UpgradeExecutions,
        Upgrades,
    )

__all__ = [
    "Catalog",
    "Claims",
    "Clock",
    "Clusters",
    "DeadLetters",
    "EvictionRefusedError",
    "Executions",
    "Groups",
    "Instances",
    "KnownNodegroups",
    "Kubernetes",
    "LaunchSources",
    "Network",
    "Nodegroups",
    "Ports",
    "PriceList",
    "Redelivery",
]


class Clock(Protocol):
    """Time, which the simulation jumps."""

    def now(self) -> datetime:
        """Return the present, aware, in UTC."""
        ...

    def sleep(self, seconds: float) -> None:
        """Sleep inside a step."""
        ...


class Clusters(Protocol):
    """The clusters that this deployment serves."""

    def names(self) -> tuple[str, ...]:
        """Return the names in the settings' order."""
        ...

    def policies(self, cluster: str) -> ClusterPolicies:
        """Return the policies written for the cluster, cached for 60 s. Raises InvalidPolicyError."""
        ...

    def kubernetes(self, cluster: str, *, within: TimeBudget | None = None) -> Kubernetes:
        """Return a client for the cluster's API, which connects at its first use. `within` bounds all of its calls
        together: one that would last longer raises ClusterUnreachableError.
        """
        ...


class Instances(Protocol):
    """EC2 instances."""

    def describe(self, ids: Iterable[str]) -> Mapping[str, Instance]:
        """Return the instances that EC2 knows, by id, looked up by filter in batches: an unknown id is absent."""
        ...

    def impaired(self) -> Mapping[str, Impairment]:
        """Return all running instances of the account and Region whose status checks fail, by id."""
        ...


class Groups(Protocol):
    """Auto Scaling groups."""

    def describe(self, names: Iterable[str]) -> Mapping[str, Group]:
        """Return the groups that exist, by name."""
        ...

    def of_clusters(self, clusters: Iterable[str]) -> Sequence[Group]:
        """Return every group tagged for one of the clusters (`kubernetes.io/cluster/NAME` or `eks:cluster-name`)."""
        ...

    def lifecycle_of(self, instance: str) -> tuple[str, str] | None:
        """Return (group, lifecycle state) now, None when no group holds the instance."""
        ...

    def hooks(self, group: str) -> Sequence[LifecycleHook]:
        """Return all hooks of the group, those of Leeward and of others."""
        ...

    def put_hook(self, hook: LifecycleHook, *, default_result: HookResult) -> None:
        """Create or overwrite; the same call twice is one hook."""
        ...

    def delete_hook(self, *, group: str, hook: str) -> None:
        """Delete a hook; one that does not exist counts as done. Instances that it holds are released: launches are
        abandoned, all others continue.
        """
        ...

    def complete(self, *, group: str, hook: str, instance: str, result: HookResult) -> bool:
        """Complete the action by instance id; False when no such action waits (completed before, or timed out)."""
        ...

    def heartbeat(self, *, group: str, hook: str, instance: str) -> bool:
        """Extend a waiting action; False when there is none."""
        ...

    def launch(self, *, group: str, subnet: str, token: str, count: int = 1) -> Replacement:
        """Launch `count` instances (at most 100) by LaunchInstances in the subnet, fewer where there is capacity for
        fewer; the same token, with the same count, gives the same instances.

        Where nothing is launched the answer has no instance and the reason: `refused` (mixed purchase options, launch
        configuration, MaxSize, permission denied, operation unknown), or `no_capacity` where another subnet may have
        what this one lacks, wholly or for a part.
        """
        ...

    def terminate(self, *, instance: str, decrement: bool, anyway: bool = False) -> bool:
        """Call TerminateInstanceInAutoScalingGroup after a fresh read of the instance's state in its group; False when
        no group holds the instance, it is already leaving, or has left for the warm pool or is retained (those only
        with `anyway`).
        """
        ...

    def activities(self, group: str, since: datetime) -> Sequence[ScalingActivity]:
        """Return the group's scaling activities begun since then, newest first; none for a group that is gone."""
        ...


class Claims(Protocol):
    """The table's termination records. Writes are conditional: the loser reads again."""

    def read(self, instance: str) -> TerminationRecord | None:
        """Return the record, strongly consistent."""
        ...

    def read_all(self, instances: Iterable[str]) -> Mapping[str, TerminationRecord]:
        """Return the records that exist, open and closed, by instance, strongly consistent; one
        call reads a hundred.
        """
        ...

    def claim(self, subject: Subject, cause: Cause, now: datetime) -> TerminationRecord:
        """Open a record with its first cause, or join an open one (version + 1 unless the cause is known).

        A closed record is reopened with attempt + 1 when the cause is new to it; else it is returned closed.
        """
        ...

    def begin_attempt(self, instance: str, after: int, *, taken: int = 0) -> TerminationRecord:
        """Set attempt = `after` + (`taken`, else 1) if it still is `after` and the record is open; return the record as
        it then stands either way.

        A new attempt (also one that `claim` opens) resets its clocks: the times draining, until, evicting, drained,
        moved and retry, `blocked_by` and `failure` are removed, everything else stays. `taken`: number of names that
        belong to executions of earlier records; `names_taken` grows by as many.
        """
        ...

    def note(
        self,
        instance: str,
        *,
        times: Mapping[str, datetime] | None = None,
        heartbeats: Mapping[str, datetime] | None = None,
        replacement: Replacement | None = None,
        payers: Mapping[str, str] | None = None,
        node: str | None = None,
    ) -> None:
        """Write progress; never touches version, causes or status. `times` and `payers` already set are kept, except
        the times `retry` and `moved`. Raises ObjectGoneError.
        """
        ...

    def note_attempt(
        self,
        instance: str,
        attempt: int,
        *,
        times: Mapping[str, datetime] | None = None,
        blocked_by: Sequence[str] | None = None,
        evicted: int = 0,
    ) -> None:
        """Write progress of one attempt, as `note` does. Writes nothing once another attempt has begun: a step may
        outlive its execution, and its clocks are not those of the next one. Raises ObjectGoneError.
        """
        ...

    def failed(self, instance: str, why: str) -> None:
        """Write why the present attempt does not succeed. Raises ObjectGoneError."""
        ...

    def saw(self, instance: str, seen: Seen) -> None:
        """Overwrite the observed state of EC2 and Auto Scaling. Raises ObjectGoneError."""
        ...

    def surge(self, instance: str, surges: Mapping[str, bool]) -> None:
        """Overwrite which Deployments have a second replica because of this termination. Raises ObjectGoneError."""
        ...

    def plan(self, instance: str, plan: LaunchPlan) -> None:
        """Overwrite where the replacement is to be launched. Raises ObjectGoneError."""
        ...

    def close(self, instance: str, *, version: int, outcome: Outcome, now: datetime) -> None:
        """Close the record if no cause joined since `version`. Raises RecordChangedError."""
        ...

    def open_instances(self) -> Sequence[str]:
        """Return the instances of all open records, from an index that may lag by seconds."""
        ...

    def once(self, key: str, lasts: timedelta, now: datetime) -> bool:
        """Return True for the first caller of this key within the span: deduplicates Health events and the like."""
        ...


class Executions(Protocol):
    """The node-termination state machine."""

    def start(self, instance: str, attempt: int) -> bool:
        """Start the execution named for the attempt; True when it runs (new or already open),
        False when a closed one holds the name.
        """
        ...

    def running(self, instance: str, attempt: int) -> bool:
        """Return whether the execution named for the attempt is open."""
        ...

    def all_running(self) -> frozenset[str]:
        """Return the names of all open executions; one call reads a thousand and may lag by seconds, in both
        directions.
        """
        ...

    def wake(self, token: str) -> None:
        """End a pause; a token whose task has ended is no error."""
        ...


class DeadLetters(Protocol):
    """The dead-letter queue, to which malformed messages are sent at once."""

    def send(self, body: str, *, reason: str, message_id: str) -> None:
        """Put the body into the dead-letter queue with its reason as attribute `reason`."""
        ...


class Redelivery(Protocol):
    """Delay until the queue delivers failed messages again."""

    def after(self, delays: Mapping[str, int], *, queue: str = "") -> None:
        """Set the delays, receipt handle -> seconds, of messages of one queue (its ARN; empty: the interruption queue).
        An expired handle is skipped: its message is visible already.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """All ports; a step takes those that it needs. `queue_arns`: the interruption queue and the hook topics, which
    identify Leeward's hooks. `hook_mark`: what fn sync marks its hooks with. `deployment`: the id of this one, the
    owner of its taints and records.
    `origins`: (account, region) of every cluster, empty strings for any; no pair at all: not checked. `budget`: what is
    left of the invocation for remote calls, None without a limit.
    """

    clock: Clock
    clusters: Clusters
    instances: Instances
    network: Network
    price_list: PriceList
    catalog: Catalog
    nodegroups: KnownNodegroups
    launches: LaunchSources
    groups: Groups
    claims: Claims
    executions: Executions
    dead_letters: DeadLetters
    redelivery: Redelivery
    load_balancers: LoadBalancers
    group_changes: GroupChanges
    maxima: Maxima
    templates: Templates
    managed_updates: ManagedUpdates
    service_limits: ServiceLimits
    alarms: Alarms
    upgrades: Upgrades
    upgrade_executions: UpgradeExecutions
    rounds: Rounds
    round_executions: RoundExecutions
    deployment: str
    queue_arns: frozenset[str] = frozenset()
    hook_mark: str = well_known.HOOK_MARK
    origins: frozenset[tuple[str, str]] = frozenset()
    budget: TimeBudget | None = None

    def within(self, budget: TimeBudget) -> Self:
        """Return the same ports, whose Kubernetes calls end with the budget or with the present one, whichever is
        earlier.
        """
        narrower = budget.narrower(self.budget)
        return replace(self, budget=narrower, clusters=BoundedClusters(self.clusters, narrower))

    def for_seconds(self, seconds: float) -> Self:
        """Return the ports `within` a budget that begins now."""
        return self.within(TimeBudget.of(self.clock, seconds))
