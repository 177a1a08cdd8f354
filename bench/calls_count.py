"""Counts of the product's calls to AWS and to Kubernetes in a simulated world, by operation and by function.

AWS is counted at the ports, as the calls that the adapters in `leeward.adapters.aws` make for each: batches of their
size, the read before each termination, and answers that an adapter keeps per sandbox for a minute (hooks, load
balancers). Kubernetes is counted request by request, pages of a list as one.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any, cast

from leeward.adapters.aws.groups import HOOKS_LAST, NAMES_PER_CALL
from leeward.adapters.aws.instances import CHECKS, FILTER_VALUES
from simulation.world import World

TERMINATION = frozenset({"interruption", "terminate", "drain"})  # functions that work on the termination of one node
KEPT_SECONDS = HOOKS_LAST.total_seconds()
DESCRIBES = ("ec2:Describe", "autoscaling:Describe")  # the targets are about these
OTHERS_DESCRIBES = "elasticloadbalancing:Describe"
Made = tuple[tuple[str, int], ...]
Operations = dict[str, Callable[..., Made]]  # by method, from its answer and its arguments


@dataclass(slots=True)
class Counts:
    """Numbers of calls by (function, operation). `events`: Kubernetes Events among them."""

    aws: Counter[tuple[str, str]] = field(default_factory=Counter)
    kubernetes: Counter[tuple[str, str]] = field(default_factory=Counter)

    def minus(self, before: "Counts") -> "Counts":
        """Return the calls made since `before`."""
        return Counts(aws=self.aws - before.aws, kubernetes=self.kubernetes - before.kubernetes)

    def copy(self) -> "Counts":
        """Return a copy of the present counts."""
        return Counts(aws=self.aws.copy(), kubernetes=self.kubernetes.copy())

    def describes(self, functions: Iterable[str] = TERMINATION) -> int:
        """Number of Describe calls to EC2 and Auto Scaling."""
        wanted = frozenset(functions)
        return sum(n for (who, what), n in self.aws.items() if who in wanted and what.startswith(DESCRIBES))

    def lists(self, functions: Iterable[str] = TERMINATION) -> int:
        """Number of list requests to the API server."""
        wanted = frozenset(functions)
        return sum(n for (who, what), n in self.kubernetes.items() if who in wanted and what.startswith("list "))

    def by_operation(self, of: Counter[tuple[str, str]], functions: Iterable[str]) -> Counter[str]:
        """Return the counts of these functions together, by operation."""
        wanted, found = frozenset(functions), Counter[str]()
        for (who, what), count in of.items():
            if who in wanted:
                found[what] += count
        return found

    @property
    def functions(self) -> tuple[str, ...]:
        """Functions that made any call."""
        return tuple(sorted({who for who, _ in (*self.aws, *self.kubernetes)}))


class Counting:
    """Port whose calls are counted as `operations` says; others are only passed on."""

    def __init__(self, port: Any, operations: Operations, count: Callable[[Made], None]) -> None:
        self._port, self._operations, self._count = port, operations, count

    def __getattr__(self, method: str) -> Any:
        call, made = getattr(self._port, method), self._operations.get(method)
        if made is None:
            return call

        def counted(*arguments: Any, **named: Any) -> Any:
            fixed = tuple(tuple(one) if isinstance(one, Iterator) or _is_lazy(one) else one for one in arguments)
            try:
                answer = call(*fixed, **named)
            except Exception:
                self._count(made(None, *fixed, **named))
                raise
            self._count(made(answer, *fixed, **named))
            return answer

        return counted


def _is_lazy(argument: object) -> bool:
    return isinstance(argument, Iterable) and not isinstance(argument, Sized)


def watch(world: World) -> Counts:
    """Count everything from now on."""
    counts, kept = Counts(), dict[tuple[str, str, str], float]()

    def who() -> str:
        return world.invocations.environment().partition("-")[0] or "?"

    def aws(made: Made) -> None:
        for operation, number in made:
            if number:
                counts.aws[who(), operation] += number

    def remembered(operation: str, key: str) -> Made:
        """Return one call, or none if this sandbox has the answer of the last minute."""
        now, place = world.timeline.now(), (world.invocations.environment(), operation, key)
        if now < kept.get(place, 0.0):
            return ()
        kept[place] = now + KEPT_SECONDS
        return ((operation, 1),)

    _count_ports(world, aws, remembered)
    _count_requests(world, lambda request: counts.kubernetes.update([(who(), request)]))
    return counts


def _count_ports(world: World, count: Callable[[Made], None], remembered: Callable[[str, str], Made]) -> None:
    ports = world.system.ports
    autoscaling: Operations = {
        "describe": lambda _, names: _batched("autoscaling:DescribeAutoScalingGroups", names, NAMES_PER_CALL),
        "of_clusters": lambda *_: _one("autoscaling:DescribeAutoScalingGroups"),
        "lifecycle_of": lambda *_: _one("autoscaling:DescribeAutoScalingInstances"),
        "hooks": lambda _, group: remembered("autoscaling:DescribeLifecycleHooks", group),
        "activities": lambda *_: _one("autoscaling:DescribeScalingActivities"),
        "terminate": lambda done, **_: (
            ("autoscaling:DescribeAutoScalingInstances", 1),
            ("autoscaling:TerminateInstanceInAutoScalingGroup", int(done is not False)),
        ),
        "complete": lambda *_, **__: _one("autoscaling:CompleteLifecycleAction"),
        "heartbeat": lambda *_, **__: _one("autoscaling:RecordLifecycleActionHeartbeat"),
        "launch": lambda *_, **__: _one("autoscaling:LaunchInstances"),
        "put_hook": lambda *_, **__: _one("autoscaling:PutLifecycleHook"),
    }
    ec2: Operations = {
        "describe": lambda _, ids: _batched("ec2:DescribeInstances", ids, FILTER_VALUES),
        "scheduled_events": lambda *_: _one("ec2:DescribeInstanceStatus"),
        "reboot": lambda *_: _one("ec2:RebootInstances"),
        "impaired": lambda _: (("ec2:DescribeInstanceStatus", len(CHECKS)),),
    }
    subnets: Operations = {"subnets": lambda *_: _one("ec2:DescribeSubnets")}
    targets = ("elasticloadbalancing:DescribeTargetGroups", "elasticloadbalancing:DescribeLoadBalancers")
    balancers: Operations = {"targets": lambda *_: tuple(call for name in targets for call in remembered(name, ""))}
    world.system.ports = replace(
        ports,
        groups=cast(Any, Counting(ports.groups, autoscaling, count)),
        instances=cast(Any, Counting(ports.instances, ec2, count)),
        network=cast(Any, Counting(ports.network, subnets, count)),
        load_balancers=cast(Any, Counting(ports.load_balancers, balancers, count)),
        claims=cast(Any, Counting(ports.claims, _table(), count)),
    )


def _table() -> Operations:
    """Return the operations of termination records only; `read_all` counts one call for each hundred."""
    writes = ("claim", "begin_attempt", "note", "plan", "failed", "saw", "surge", "close", "once")
    operations: Operations = {name: lambda *_, **__: _one("dynamodb:UpdateItem") for name in writes}
    operations["read"] = lambda *_: _one("dynamodb:GetItem")
    operations["read_all"] = lambda _, names: _batched("dynamodb:BatchGetItem", names, 100)
    return operations


def _one(operation: str) -> Made:
    return ((operation, 1),)


def _batched(operation: str, names: Sized, together: int) -> Made:
    return ((operation, ceil(len(names) / together)),)


def _count_requests(world: World, count: Callable[[str], None]) -> None:
    """Count `verb resource` of each request; refused and lost requests count as well."""
    disturb = world.kubernetes._disturb

    def counted(request: str) -> None:
        count(request)
        disturb(request)

    world.kubernetes._disturb = counted
