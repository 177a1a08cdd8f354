"""Counts of the product's calls to AWS and to Kubernetes in a simulated world, by operation and by function.

AWS is counted at the ports, as the calls that the adapters in `leeward.adapters.aws` make for each: batches of their
size, the read before each termination, and answers that an adapter keeps per sandbox: hooks and load balancers for a
minute, empty ones about status checks and scheduled events for less than three, instance types and images for its life.
Kubernetes is counted request by request, pages of a list as one.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import ceil, inf
from typing import Any, cast

from leeward.adapters.aws.groups import HOOKS_LAST, NAMES_PER_CALL
from leeward.adapters.aws.instances import CHECKS, EMPTY_LASTS, FILTER_VALUES
from leeward.adapters.aws.launch_templates import TYPES_PER_CALL
from leeward.model.group import Group
from leeward.model.launch import LaunchSettings
from leeward.model.termination import Cause, Subject, TerminationRecord
from simulation.world import World

TERMINATION = frozenset({"interruption", "terminate", "drain"})  # functions that work on the termination of one node
KEPT_SECONDS = HOOKS_LAST.total_seconds()
PAGES_OF_TYPES = 10  # of DescribeInstanceTypes for all types of a Region
ALL_TYPES = "*"
VERSIONS = "ec2:DescribeLaunchTemplateVersions"
TYPES = "ec2:DescribeInstanceTypes"
STATUS = "ec2:DescribeInstanceStatus"
GROUPS = "autoscaling:DescribeAutoScalingGroups"
DESCRIBES = ("ec2:Describe", "autoscaling:Describe")  # the targets are about these
OTHERS_DESCRIBES = "elasticloadbalancing:Describe"
Made = tuple[tuple[str, int], ...]
Operations = dict[str, Callable[..., Made]]  # by method, from its answer and its arguments
Remembered = Callable[..., bool]  # (operation, key, seconds): this sandbox has the answer, else it has it from now on


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

    def table_calls(self, functions: Iterable[str] = TERMINATION) -> int:
        """Number of calls about termination records."""
        wanted = frozenset(functions)
        return sum(n for (who, what), n in self.aws.items() if who in wanted and what.startswith("dynamodb:"))

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

    def remembered(operation: str, key: str, seconds: float = KEPT_SECONDS) -> bool:
        now, place = world.timeline.now(), (world.invocations.environment(), operation, key)
        if now < kept.get(place, 0.0):
            return True
        kept[place] = now + seconds
        return False

    _count_ports(world, aws, remembered)
    _count_requests(world, lambda request: counts.kubernetes.update([(who(), request)]))
    return counts


def _count_ports(world: World, count: Callable[[Made], None], remembered: Remembered) -> None:
    ports = world.system.ports
    targets = ("elasticloadbalancing:DescribeTargetGroups", "elasticloadbalancing:DescribeLoadBalancers")
    ec2: Operations = {
        "describe": lambda _, ids: _batched("ec2:DescribeInstances", ids, FILTER_VALUES),
        "in_reservations": lambda _, names: _batched("ec2:DescribeInstances", names, FILTER_VALUES),
        "block_ends": lambda *_: _one("ec2:DescribeCapacityReservations"),
        "scheduled_events": _kept_while_empty("events", 1, remembered),
        "reboot": lambda *_: _one("ec2:RebootInstances"),
        "impaired": _kept_while_empty("checks", len(CHECKS), remembered),
    }
    subnets: Operations = dict.fromkeys(("subnets", "subnets_tagged"), lambda *_: _one("ec2:DescribeSubnets"))
    balancers: Operations = {"targets": lambda *_: tuple((name, 1) for name in targets if not remembered(name, ""))}
    operations: dict[str, Operations] = {
        "groups": _groups(remembered),
        "group_changes": _group_changes(),
        "instances": ec2,
        "network": subnets,
        "launches": _launches(remembered),
        "templates": _templates(),
        "price_list": {"spot": lambda _, types, *__: _batched("ec2:DescribeSpotPriceHistory", types, TYPES_PER_CALL)},
        "load_balancers": balancers,
        "claims": _table(),
    }
    counting = {name: Counting(getattr(ports, name), made, count) for name, made in operations.items()}
    world.system.ports = replace(ports, **cast(Any, counting))


def _groups(remembered: Remembered) -> Operations:
    hooks = "autoscaling:DescribeLifecycleHooks"
    return {
        "describe": lambda _, names: _batched(GROUPS, names, NAMES_PER_CALL),
        "of_clusters": lambda *_: _one(GROUPS),
        "lifecycle_of": lambda *_: _one("autoscaling:DescribeAutoScalingInstances"),
        "hooks": lambda _, group: () if remembered(hooks, group) else _one(hooks),
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


def _group_changes() -> Operations:
    """Return the operations of changes of a group, each of which reads it first."""
    update = ((GROUPS, 1), ("autoscaling:UpdateAutoScalingGroup", 1))
    return {
        **dict.fromkeys(("point_at", "raise_to", "put_back_maximum"), lambda *_, **__: update),
        "suspend": lambda *_: _one("autoscaling:SuspendProcesses"),
        "resume": lambda *_: _one("autoscaling:ResumeProcesses"),
    }


def _launches(remembered: Remembered) -> Operations:
    """Return the operations of launch settings: a version is read each time, and again where it names its image by an
    SSM parameter; a type and an image once for each sandbox.
    """
    images = "ec2:DescribeImages"

    def settings(answer: LaunchSettings | None, group: Group) -> Made:
        if group.launch.configuration and group.launch.template is None:
            return _one("autoscaling:DescribeLaunchConfigurations")
        return ((VERSIONS, 2 if answer and answer.alias else 1),) if group.launch.template else ()

    def types(_: object, names: Iterable[str]) -> Made:
        return _batched(TYPES, [name for name in set(names) if not remembered(TYPES, name, inf)], TYPES_PER_CALL)

    return {
        "settings": settings,
        "instance_types": types,
        "all_instance_types": lambda *_: () if remembered(TYPES, ALL_TYPES, inf) else ((TYPES, PAGES_OF_TYPES),),
        "image": lambda _, name: () if remembered(images, name, inf) else _one(images),
    }


def _templates() -> Operations:
    return {
        "version_for": lambda *_, **__: ((VERSIONS, 2),),  # the version and the latest
        "numbered": lambda *_: _one(VERSIONS),
        "image_exists": lambda *_: _one("ec2:DescribeImages"),
    }


def _kept_while_empty(what: str, number: int, remembered: Remembered) -> Callable[..., Made]:
    """Return the calls for an answer that is kept while it is empty, where the caller lets it be a recent one."""
    seconds = EMPTY_LASTS.total_seconds()

    def made(answer: Sized | None, *, recent: bool = False) -> Made:
        if recent and answer is not None and not answer and remembered(STATUS, what, seconds):
            return ()
        return ((STATUS, number),)

    return made


def _table() -> Operations:
    """Return the operations of termination records only; `read_all` counts one call for each hundred. The token of a
    pause, which the state machine writes, is no call of a function.
    """
    writes = (
        "begin_attempt begin_plan close count failed forget_reboot note note_attempt note_reboot once plan replaced"
    )
    operations: Operations = {
        name: lambda *_, **__: _one("dynamodb:UpdateItem") for name in (*writes.split(), "saw", "surge", "withdraw")
    }
    operations["claim"] = _claim_calls
    operations["read"] = lambda *_: _one("dynamodb:GetItem")
    operations["read_all"] = lambda _, names: _batched("dynamodb:BatchGetItem", names, 100)
    return operations


def _claim_calls(
    answer: TerminationRecord | None,
    _subject: Subject,
    _cause: Cause,
    _now: datetime,
    known: TerminationRecord | None = None,
    **_: object,
) -> Made:
    """Return the calls of a claim: a new record is put, one that the caller knows is joined at once; any other is found
    by the write of a new one, which fails.
    """
    first = ("dynamodb:PutItem", 1) if known is None else ("dynamodb:UpdateItem", 1)
    is_new = answer is not None and answer.version == 1
    return (first,) if is_new or known is not None else (first, ("dynamodb:UpdateItem", 1))


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
