"""Rate limits of EC2 and Auto Scaling on the calls of an account and Region: token buckets, which neighbours use too.

Source: Amazon EC2 developer guide, "Request throttling for the Amazon EC2 API": each API has a bucket of its own. Auto
Scaling has one limit for all of its calls, whose numbers AWS does not publish. A throttled call is tried again as
botocore's standard mode does it, in virtual time, and then raises what the adapter raises."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import ceil
from random import Random
from typing import Any

from leeward.adapters.aws.clients import ATTEMPTS
from leeward.adapters.aws.groups import HOOKS_LAST, NAMES_PER_CALL
from leeward.adapters.aws.instances import CHECKS, FILTER_VALUES
from leeward.errors import ThrottledError

LONGEST_BACKOFF = 20.0  # seconds, of botocore's standard mode


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Size and refill of a bucket. It holds `size` calls and gets `refill` a second, of which neighbours in the account
    take `neighbours`.
    """

    size: float
    refill: float
    neighbours: float

    @property
    def left(self) -> float:
        """Part of the refill that neighbours leave us."""
        return self.refill - self.neighbours


NEIGHBOURS = 5.0  # calls a second to each API of EC2 that we use
EC2_DESCRIBE = Rate(size=100, refill=20, neighbours=NEIGHBOURS)  # filtered or paginated
AUTO_SCALING_ASSUMPTION = Rate(size=50, refill=5, neighbours=1)  # an ASSUMPTION: for all calls in all, unpublished

AUTO_SCALING = "autoscaling"
DESCRIBE_INSTANCES = "ec2:DescribeInstances"
TERMINATE = "autoscaling:TerminateInstanceInAutoScalingGroup"
OPERATIONS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("instances", "describe"): (DESCRIBE_INSTANCES,),
    ("instances", "impaired"): ("ec2:DescribeInstanceStatus",) * len(CHECKS),
    ("instances", "scheduled_events"): ("ec2:DescribeInstanceStatus",),
    ("instances", "reboot"): ("ec2:RebootInstances",),
    ("network", "subnets"): ("ec2:DescribeSubnets",),
    ("network", "subnets_tagged"): ("ec2:DescribeSubnets",),
    ("launches", "settings"): ("ec2:DescribeLaunchTemplateVersions",),
    ("launches", "instance_types"): ("ec2:DescribeInstanceTypes",),
    ("launches", "all_instance_types"): ("ec2:DescribeInstanceTypes",),
    ("groups", "describe"): ("autoscaling:DescribeAutoScalingGroups",),
    ("groups", "of_clusters"): ("autoscaling:DescribeAutoScalingGroups",),
    ("groups", "lifecycle_of"): ("autoscaling:DescribeAutoScalingInstances",),
    ("groups", "hooks"): ("autoscaling:DescribeLifecycleHooks",),
    ("groups", "put_hook"): ("autoscaling:PutLifecycleHook",),
    ("groups", "delete_hook"): ("autoscaling:DeleteLifecycleHook",),
    ("groups", "complete"): ("autoscaling:CompleteLifecycleAction",),
    ("groups", "heartbeat"): ("autoscaling:RecordLifecycleActionHeartbeat",),
    ("groups", "launch"): ("autoscaling:LaunchInstances",),
    ("groups", "terminate"): ("autoscaling:DescribeAutoScalingInstances", TERMINATE),
    ("groups", "activities"): ("autoscaling:DescribeScalingActivities",),
    ("group changes", "point_at"): ("autoscaling:UpdateAutoScalingGroup",),
    ("group changes", "raise_to"): ("autoscaling:UpdateAutoScalingGroup",),
    ("group changes", "put_back_maximum"): ("autoscaling:UpdateAutoScalingGroup",),
    ("group changes", "suspend"): ("autoscaling:SuspendProcesses",),
    ("group changes", "resume"): ("autoscaling:ResumeProcesses",),
}
"""Port and method -> the calls of AWS that it makes, in their order."""
BATCHES: Mapping[tuple[str, str], int] = {
    ("instances", "describe"): FILTER_VALUES,
    ("groups", "describe"): NAMES_PER_CALL,
}
"""Methods that ask about so many ids with one call."""
ASKED_ONCE = frozenset({TERMINATE, "ec2:RebootInstances"})  # the adapter lets botocore repeat none


class RateLimits:
    """Limits of one account. `sleep` lets other invocations run; `environment` names the one that asks, which caches
    hooks as its adapter does. `throttled`: attempts that were refused, by operation; `refused`: calls that gave up.
    """

    def __init__(
        self,
        now: Callable[[], float],
        sleep: Callable[[float], None],
        random: Random,
        environment: Callable[[], str] = lambda: "",
    ) -> None:
        self._now, self._sleep, self._random, self._environment = now, sleep, random, environment
        self._buckets: dict[str, tuple[float, float]] = {}  # API -> (tokens, when)
        self._hooks: dict[tuple[str, str], float] = {}  # (environment, group) -> when its hooks are read again
        self.attempts: Counter[str] = Counter()
        self.throttled: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()

    def admit(self, port: str, method: str, arguments: tuple[Any, ...]) -> None:
        """Make the calls behind one port method. Raises ThrottledError when every attempt of one was refused."""
        if method == "hooks" and self._knows_hooks(str(arguments[0])):
            return
        asked = arguments[0] if arguments else ()
        size = BATCHES.get((port, method))
        calls = ceil(len(set(asked)) / size) if size and isinstance(asked, Iterable) else 1
        for operation in OPERATIONS.get((port, method), ()) * calls:
            self._call(operation)
        if method == "hooks":
            self._hooks[(self._environment(), str(arguments[0]))] = self._now() + HOOKS_LAST.total_seconds()

    def _knows_hooks(self, group: str) -> bool:
        environment = self._environment()
        return bool(environment) and self._now() < self._hooks.get((environment, group), 0)

    def _call(self, operation: str) -> None:
        """Try the call as botocore's standard mode does: a random part of 1, 2, 4 ... seconds before the second, third
        ... attempt.
        """
        attempts = 1 if operation in ASKED_ONCE else ATTEMPTS
        for attempt in range(attempts):
            self.attempts[operation] += 1
            if self._take(operation):
                return
            self.throttled[operation] += 1
            if attempt + 1 < attempts:
                self._sleep(self._random.random() * min(2.0**attempt, LONGEST_BACKOFF))
        self.refused[operation] += 1
        raise ThrottledError(f"{operation}: rate exceeded")

    def _take(self, operation: str) -> bool:
        service = operation.partition(":")[0]
        bucket, rate = (AUTO_SCALING, AUTO_SCALING_ASSUMPTION) if service == AUTO_SCALING else (operation, EC2_DESCRIBE)
        now = self._now()
        tokens, since = self._buckets.get(bucket, (rate.size, now))
        tokens = min(rate.size, tokens + (now - since) * rate.left)
        taken = tokens >= 1
        self._buckets[bucket] = (tokens - taken, now)
        return taken
