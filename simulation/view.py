"""Inputs and results of the invariants: the world as it stands, the rules, a violation. Decides nothing."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Protocol

from leeward.disruption.record import DisruptionRecord
from leeward.model.group import Group, HookResult
from leeward.model.termination import LaunchPlan
from leeward.policy.document import ClusterPolicies
from leeward.upgrade.record import UpgradeRecord
from local.cluster.model import Cluster
from simulation.asked import Asked
from simulation.aws.books import Book
from simulation.aws.queue import DeadLetter
from simulation.aws_view import AwsView
from simulation.faults import Crowd
from simulation.kubernetes import Deletion, Eviction, Removal

HookCall = tuple[str, str, str, bool]  # group, hook, instance, whether it was us


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Lifecycle action that holds an instance: `ends` when its time-out gives `default`, in seconds since 1970."""

    hook: str
    ours: bool
    launching: bool
    since: float
    timeout: float
    ends: float
    default: HookResult


class Rule(StrEnum):
    """Rules of a run. Those before REST, IN_SERVICE, VOLUMES, SPENT and those from DRIFT on hold always, REST for the
    whole run, the others at the end.
    """

    EVICTION = "no eviction that a PodDisruptionBudget forbids"
    DELETION = "no pod deleted by us without force"
    NOTICE = "no pod killed with less than the notice that EC2 gives"
    UNMARKED = "no taint of ours removed while a termination is open"
    HEARTBEAT = "no heartbeat for a hook that never held the instance"
    LAUNCH_HOOK = "the launch hook of an instance that does not join is left to its own result"
    CLAIM = "a spot warning is claimed at once, whatever the Kubernetes API does"
    FOREIGN_HOOK = "no foreign hook answered or heartbeaten by us"
    DECREMENT = "desired size lowered by us only to pay for a launch, once"
    ANSWER = "every hook of ours is answered by us"
    LAUNCH = "one launch for each instance that goes"
    EXECUTION = "at most one open execution for each instance"
    REMOVAL = "no Node of a running instance removed by us"
    CORDON = "no cordon of ours left when our mark comes off"
    FOREIGN_CORDON = "no cordon of somebody else taken off by us"
    FOREIGN_MARK = "no mark of another deployment taken off by us"
    PACE = "an upgrade holds no more nodes unavailable than maxUnavailable"
    UNAVAILABLE = "maintenance far ahead begins only where the budgets allow one more"
    DRAINED = "no instance let go by us with pods that could still leave"
    DEADLINE = "a spot instance is drained and its hooks are answered before EC2 takes it"
    CAUSE = "no message acknowledged without the record that it calls for"
    MALFORMED = "malformed messages, and no others, go to the dead letters, with a reason"
    PLACEMENT = "no launch planned where the subnet has long lacked addresses"
    ELSEWHERE = "nothing of one cluster is done in another"
    SELECTED = "nothing is done to a group that no policy of its own cluster selects"
    TAINT = "a spot warning taints its node at once, whatever another cluster's API does"
    MINUTE = "the minute reconciler reaches a cluster at once, whatever another cluster's API does"
    REST = "the world comes to rest"
    IN_SERVICE = "no pod evicted while a load balancer still has its node, where there is time"
    VOLUMES = "no instance let go by us while a volume of a pod that has left is attached, where there is time"
    MARK = "no mark without an open record"
    GONE = "no open record whose instance is gone"
    HOOK = "no hook of ours waits without an open record"
    MESSAGE = "no message is left"
    RECORD = "every record is closed or comes up for a retry"
    SIZE = "groups are at their desired size"
    DEBT = "every launch of ours is paid for"
    UPGRADE = "no upgrade that runs gets nowhere"
    TARGET = "after an upgrade every member is on the target"
    RESTORED = "sizes and processes are what they were when no upgrade needs them otherwise"
    LIFTED = "no cordon of an upgrade left without one that can go on"
    EXCLUDED = "no node kept out of load balancers by us without our mark"
    REPLICAS = "no workload left with a second replica of ours"
    SPENT = "no run tells more nodes to go than budgets allow"
    DISRUPTION = "every disruption run comes to its end"
    LEAK = "no instance of a group runs outside of every group"
    DRIFT = "no node drifted in its image unless its group launches another"
    DRIFT_SEEN = "drift in the image is told by the first run that can read it"
    PARAMETER = "an upgrade to a parameter brings an image that it named since it was asked for"
    MANAGED = "template and sizes of a managed node group are EKS' alone"
    MANAGED_ASKED = "EKS is asked for what operators have asked, by force only where they or the policy say so"
    MANAGED_DONE = "an upgrade of a managed node group is done when EKS has every node there"


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """Violation of a rule. `at` in seconds since 1970; `text` names the objects. `seed` repeats the run, None outside
    of one.
    """

    seed: int | None
    at: float
    rule: Rule
    text: str

    def __str__(self) -> str:
        """Return one line for the story of the run."""
        when = datetime.fromtimestamp(self.at, UTC).strftime("%d %H:%M:%S")
        return f"seed {self.seed} at {when}: {self.rule.value}: {self.text}"


class WorldView(AwsView, Protocol):
    """World as it stands after an event. Sequences only ever grow at their end."""

    @property
    def now(self) -> float:
        """Seconds since 1970."""
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

    def holds(self, instance: str) -> Sequence[Hold]:
        """Return the lifecycle actions that hold it."""
        ...

    @property
    def misdirected(self) -> Sequence[tuple[str, str, str]]:
        """Heartbeats of ours, as (group, hook, instance), for actions that have never waited."""
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
    def waiting(self) -> Set[tuple[str, str, str]]:
        """Every action that holds an instance, as (group, hook, instance)."""
        ...

    @property
    def completed_hooks(self) -> Sequence[HookCall]:
        """Answers that had an effect, and whether they were ours."""
        ...

    @property
    def timed_out(self) -> Sequence[tuple[str, str, str]]:
        """Every action without an answer in time, as (group, hook, instance)."""
        ...

    def event_came(self, group: str, hook: str, instance: str) -> float:
        """Return when the first event came that says that hooks keep the instance from ending; infinite if all were
        lost.
        """
        ...

    def time_out(self, group: str, hook: str) -> float:
        """Return the hook's HeartbeatTimeout in seconds."""
        ...

    def held_to_the_end(self, group: str, hook: str, instance: str) -> bool:
        """Return whether the action has waited for as long as Auto Scaling lets heartbeats keep it."""
        ...

    @property
    def heartbeats(self) -> Sequence[HookCall]:
        """Heartbeats that had an effect."""
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
    def marked_by_others(self) -> Set[str]:
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
    def started_by_hand(self) -> Set[str]:
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
    def removals(self) -> Sequence[Removal]:
        """Nodes removed by us (`SimKubernetes.removals`)."""
        ...

    def ours(self, hook: str, group: str) -> bool:
        """Return whether the hook is ours to answer, by its origin: not by the product's own calculation."""
        ...

    def ends(self, hook: str, group: str) -> bool:
        """Return whether the hook is ours and its answer lets an instance end."""
        ...

    def running(self, instance: str) -> bool:
        """Return whether EC2 knows the instance and has not begun to terminate it."""
        ...
