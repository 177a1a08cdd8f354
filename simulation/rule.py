"""Rules that hold in every world, and a violation of one."""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum


class Rule(StrEnum):
    """Rules of a run. Those before REST, IN_SERVICE, VOLUMES, SPENT and those from DRIFT on hold always, REST for the
    whole run, the others at the end.
    """

    EVICTION = "no eviction that a PodDisruptionBudget forbids"
    DELETION = "no pod deleted by us without force"
    NOTICE = "no pod killed with less than the notice that EC2 gives"
    UNTAINTED = "no taint of ours removed while a termination is open"
    HEARTBEAT = "no heartbeat for a hook that never held the instance"
    LAUNCH_HOOK = "the launch hook of an instance that does not join is left to its own result"
    CLAIM = "a spot warning is claimed at once, whatever the Kubernetes API does"
    FOREIGN_HOOK = "no foreign hook answered or heartbeaten by us"
    DECREMENT = "desired size lowered by us only to offset a launch, once"
    ANSWER = "every hook of ours is answered by us"
    LAUNCH = "one launch for each terminating instance"
    EXECUTION = "at most one open execution for each instance"
    REMOVAL = "no Node of a running instance removed by us"
    CORDON = "no cordon of ours left when our taint is removed"
    FOREIGN_CORDON = "no foreign cordon removed by us"
    FOREIGN_TAINT = "no taint of another deployment removed by us"
    SERVES = "no pod waits beside its replacement because of its zone, where another zone was possible"
    PACE = "nothing that is not urgent holds more nodes with pods than maxUnavailable and budgets for upgrades allow"
    MAX_SURGE = "no upgrade adds more instances to a group than maxSurge, those that still end counted"
    OPT_OUT = "no pod that opts out of disruption is evicted for a run"
    UNAVAILABLE = "maintenance far ahead begins only where the budgets allow one more"
    DRAINED = "no instance released by us with pods that could still be evicted"
    DEADLINE = "a spot instance is drained and its hooks are answered before EC2 takes it"
    CAUSE = "no message acknowledged without the record that it calls for"
    MALFORMED = "malformed messages, and no others, go to the dead letters, with a reason"
    PLACEMENT = "no launch planned where the subnet has long lacked addresses"
    ELSEWHERE = "nothing of one cluster is done in another"
    ACCOUNT = "no call for a cluster is made in another account or Region than its own"
    SENDER = "a message acts on nothing of another account than the one that has sent it"
    SELECTED = "nothing is done to a group that no policy of its own cluster selects"
    TAINT = "a spot warning taints its node at once, whatever another cluster's API does"
    MINUTE = "the minute reconciler reaches a cluster at once, whatever another cluster's API does"
    REST = "the world comes to rest"
    IN_SERVICE = "no pod evicted while a load balancer still has its node, where there is time"
    VOLUMES = "no instance released by us while a volume of an evicted pod is attached, where there is time"
    SETTLED = "no empty node released by us within its settle time, where there is time and something may target it"
    STALE_TAINT = "no taint of ours without an open record"
    GONE = "no open record whose instance is gone"
    HOOK = "no hook of ours waits without an open record"
    MESSAGE = "no message is left"
    RECORD = "every record is closed or comes up for a retry"
    SIZE = "groups are at their desired size"
    DEBT = "every launch of ours is offset"
    UPGRADE = "every running upgrade makes progress"
    LIVENESS = "upgrades and runs end well unless the world excuses them, and say the true cause"
    STARTED_AGAIN = "an upgrade that is started again after all troubles ends well"
    LEFTOVER = "a failed upgrade leaves no new node cordoned and no taint without an execution"
    IDLE = "no node is kept under our taint while its pods may leave and none does, nor while it is empty"
    MOVES = "pods are not moved again and again, nor nodes launched without need"
    TARGET = "after an upgrade every member is on the target"
    RESTORED = "sizes and processes are what they were when no upgrade needs them otherwise"
    LIFTED = "no cordon of an upgrade left without an upgrade that can continue"
    EXCLUDED = "no node kept out of load balancers by us without our taint"
    REPLICAS = "no workload left with a second replica of ours"
    SPENT = "no run requests more terminations than budgets allow"
    DISRUPTION = "every disruption run comes to its end"
    LEAK = "no instance of a group runs outside of every group"
    DRIFT = "no node drifted in its image unless its group launches another"
    DRIFT_SEEN = "drift in the image is reported by the first run that can read it"
    PARAMETER = "an upgrade to a parameter brings an image that it named since it was asked for"
    MANAGED = "template and sizes of a managed node group are EKS' alone"
    MANAGED_ASKED = "EKS is asked for what operators have asked, by force only where they or the policy say so"
    REBOOTS = "no node is rebooted by us more than twice within a day"
    REBOOT_DRAINED = "no node is rebooted by us with pods that a drain must evict"
    REBOOT_BREAKER = "no node is rebooted by us while the circuit breaker is open"
    BLOCK = "the instances of a Capacity Block are drained before EC2 ends them"
    ALARM = "no node is started by an upgrade or a run while an alarm of its policy rings for longer than 30 s"
    SHIFT_KNOWN = "a zonal shift is known to us within a minute"
    SHIFT_LAUNCH = "no launch of ours into a zone with a zonal shift"
    SHIFT_BALANCE = "AZRebalance is not resumed by us during a zonal shift"
    SHIFT_REMOVAL = "no voluntary removal of a node in a zone with a zonal shift"
    ZONES_OPEN = "no evacuation is left when every zone is open"
    AUTOMATIC = "an upgrade that a policy starts begins in its window, after its wait, and once for each image"
    CLOSED = "no node is started by an upgrade or a run in a freeze, nor by an upgrade outside of its windows"
    CLUSTER_GONE = "nothing is terminated because EKS has deleted a cluster, and no work about it stays open"
    FRUITLESS = "runs do not launch again and again in a group whose new nodes serve no pod"
    NOTIFIED = "each start of an upgrade or a disruption run is notified once, and so is its end"
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
