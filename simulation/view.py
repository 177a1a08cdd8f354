"""Inputs of the invariants: the world as it stands. `rule.py` contains the rules. Decides nothing."""

from collections.abc import Mapping, Sequence, Set
from typing import Protocol

from leeward.disruption.record import DisruptionRecord
from leeward.model.group import Group
from leeward.model.termination import LaunchPlan
from leeward.policy.document import ClusterPolicies
from leeward.upgrade.record import UpgradeRecord
from local.cluster.model import Cluster
from simulation.asked import Asked
from simulation.aws.books import Book
from simulation.aws.queue import DeadLetter
from simulation.aws.reboots import Requested
from simulation.aws_view import AwsView
from simulation.faults import Crowd
from simulation.hook_view import HookView
from simulation.removed_objects import Deletion, Eviction, Removal


class WorldView(AwsView, HookView, Protocol):
    """World as it stands after an event. Sequences only ever grow at their end."""

    @property
    def now(self) -> float:
        """Seconds since 1970."""
        ...

    @property
    def account(self) -> tuple[str, str]:
        """Account and Region of the cluster, whose messages alone are about it."""
        ...

    @property
    def cluster(self) -> Cluster:
        """Cluster model."""
        ...

    @property
    def policies(self) -> ClusterPolicies:
        """Policies that are written for it."""
        ...

    @property
    def groups(self) -> Mapping[str, Group]:
        """Current groups by name."""
        ...

    @property
    def books(self) -> Mapping[str, Book]:
        """Debt to each group, by name."""
        ...

    @property
    def open_since(self) -> Mapping[str, float]:
        """Instances with an open record, and when it was opened."""
        ...

    def known_causes(self, instance: str) -> Sequence[str]:
        """Return the ids of its record's causes, for the rule that nothing acknowledged is lost."""
        ...

    @property
    def asked(self) -> Sequence[Asked]:
        """Requests of AWS and operators about instances."""
        ...

    @property
    def rewritten(self) -> float:
        """Time at which the policies were last changed."""
        ...

    @property
    def asked_by_us(self) -> Set[str]:
        """Instances that their group is terminating because we asked it to."""
        ...

    def forced(self, instance: str) -> bool:
        """Return whether an upgrade that was started with force may have asked for the instance."""
        ...

    def joined(self, instance: str) -> bool:
        """Return whether its Node has ever been in the cluster."""
        ...

    def launched(self, instance: str) -> float | None:
        """Return when EC2 launched it, in seconds since 1970; None for an instance that it does not know."""
        ...

    def launched_by(self, instance: str) -> str:
        """Return the group that has launched it, also after it was detached; empty for one that EC2 does not know."""
        ...

    def serves(self, instance: str) -> bool:
        """Return whether its group has it in service, its Node is there and Ready, and no upgrade or run is at its
        group.
        """
        ...

    def working_since(self, instance: str) -> float | None:
        """Return when the oldest open execution about the instance began."""
        ...

    def states_of(self, instance: str) -> Sequence[str]:
        """Return the states in which its open executions are."""
        ...

    def rested_since(self, instance: str) -> float | None:
        """Return when the last execution about the instance ended."""
        ...

    @property
    def upgrades(self) -> Mapping[str, UpgradeRecord]:
        """Latest record of each group that was ever upgraded."""
        ...

    @property
    def ringing(self) -> Mapping[str, float]:
        """Alarms in ALARM, and since when in seconds since 1970."""
        ...

    @property
    def disruptions(self) -> Mapping[str, DisruptionRecord]:
        """Latest record of each cluster that ever had a disruption run."""
        ...

    @property
    def disrupting(self) -> Set[str]:
        """Names of open executions of disruption."""
        ...

    @property
    def upgrading(self) -> Set[str]:
        """Names of open executions of node-group-upgrade and managed-node-group-upgrade."""
        ...

    @property
    def maxima(self) -> Mapping[str, int]:
        """Maximum size that each group's owner chose."""
        ...

    @property
    def open_executions(self) -> Set[str]:
        """Names of open executions; those of ours are INSTANCE-ATTEMPT, one started manually has any other."""
        ...

    def started(self, execution: str) -> float:
        """Return when an open execution began, in seconds since 1970."""
        ...

    @property
    def acknowledged(self) -> Sequence[tuple[str, str]]:
        """Messages that were handled and deleted, each as (message id, body)."""
        ...

    @property
    def dead_letters(self) -> Sequence[DeadLetter]:
        """Dead letters in the order in which they came."""
        ...

    @property
    def warned(self) -> Sequence[tuple[str, float]]:
        """Spot warnings that were sent, each as (instance, when)."""
        ...

    @property
    def reused(self) -> Set[str]:
        """Instances that have come back out of a warm pool."""
        ...

    @property
    def back_in_service(self) -> Mapping[str, float]:
        """Instances that have come back from Standby, each with the time in seconds since 1970."""
        ...

    @property
    def tainted_by_others(self) -> Set[str]:
        """Nodes on which another deployment works now, and has put its taint."""
        ...

    @property
    def faultless(self) -> bool:
        """True if nothing goes wrong in this run: only arrivals."""
        ...

    @property
    def only_kubernetes_fails(self) -> bool:
        """True if nothing goes wrong in this run but with the Kubernetes API."""
        ...

    @property
    def queue_depth(self) -> int:
        """Visible or delayed messages."""
        ...

    @property
    def in_flight(self) -> int:
        """Messages that a function has received and not deleted."""
        ...

    @property
    def launches(self) -> Sequence[tuple[str, str]]:
        """Instances launched for us, each as (token, instance); a repeat that launches nothing is not listed."""
        ...

    @property
    def plans(self) -> Sequence[tuple[str, LaunchPlan]]:
        """Launch plans that we wrote for replacements, each as (instance, plan)."""
        ...

    def refused_anywhere(self, since: float) -> bool:
        """Return whether any account of the deployment has refused its role since then."""
        ...

    def troubled(self, within: float) -> bool:
        """Return whether the Kubernetes API has been away, hung or slow in the last `within` seconds."""
        ...

    @property
    def crowded(self) -> Mapping[str, Crowd]:
        """Subnets by zone that others leave few addresses."""
        ...

    @property
    def decrements(self) -> Sequence[str]:
        """Instances that we terminated with decrement."""
        ...

    @property
    def terminations(self) -> Sequence[str]:
        """Instances whose group we asked to terminate them, where that had an effect."""
        ...

    @property
    def started_manually(self) -> Set[str]:
        """Instances for which an operator has started an execution."""
        ...

    @property
    def strays(self) -> Sequence[str]:
        """Running instances with a group's tag that no group holds."""
        ...

    @property
    def deletions(self) -> Sequence[Deletion]:
        """Pods deleted by us past the Eviction API (`SimKubernetes.deletions`)."""
        ...

    @property
    def evictions(self) -> Sequence[Eviction]:
        """Pods evicted by us through the Eviction API (`SimKubernetes.evictions`)."""
        ...

    @property
    def replicas(self) -> Mapping[str, int]:
        """Replicas that each Deployment's owner wants, by namespace/name."""
        ...

    def target(self, instance: str, at: float) -> str | None:
        """Return the health of the load balancers' target that the instance was at the moment; None: it was none."""
        ...

    @property
    def reboots(self) -> Sequence[Requested]:
        """Reboots that we have requested."""
        ...

    @property
    def removals(self) -> Sequence[Removal]:
        """Nodes removed by us (`SimKubernetes.removals`)."""
        ...

    def running(self, instance: str) -> bool:
        """Return whether EC2 knows the instance and has not begun to terminate it."""
        ...

    def ended_at(self, instance: str) -> float | None:
        """Return when EC2 began to terminate it; None for one that it has not, or does not know."""
        ...
