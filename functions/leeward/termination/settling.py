"""Settle time of an empty node: the one place that reads `drain.settle`.

With `auto` it is nothing where no load balancer can send requests to the node, and the default wherever that is not
certain: the group's own target groups, Services that are reached through nodes, and targets that are still registered
each call for it. docs/designs/draining.md has the reasons."""

from collections.abc import Callable, Sequence
from datetime import timedelta

from leeward.errors import LeewardError
from leeward.model.group import GroupFacts
from leeward.model.load_balancing import Service, TargetKind
from leeward.policy.document import SETTLES, DrainPolicy
from leeward.ports import Ports
from leeward.ports.kubernetes import Kubernetes, Listed
from leeward.termination.situation import Situation


def settle_time(
    policy: DrainPolicy, group: GroupFacts | None, services: Callable[[], Sequence[Service] | None]
) -> timedelta:
    """Return how long a node of the group stays empty before it ends. `services`: of the cluster, read only with `auto`
    and where the group itself has no load balancer; None, or a LeewardError, where they are not known.
    """
    if policy.settle is not None:
        return policy.settle
    if group is None or group.balancers:
        return SETTLES
    try:
        known = services()
    except LeewardError:
        return SETTLES
    return SETTLES if known is None or any(service.on_nodes for service in known) else timedelta()


def services_of(kubernetes: Kubernetes) -> Sequence[Service]:
    """Return the cluster's Services. Raises what the port raises."""
    return kubernetes.read(Listed.SERVICES, Service.from_json)


def settle_of_node(situation: Situation, ports: Ports) -> timedelta:
    """Return the settle time of an instance whose pods have left. One that is registered by its id is reached although
    nothing in the cluster says so; the answer is the one that the wait for its addresses uses as well.
    """
    cluster, policy = situation.record.subject.cluster, situation.policy.drain
    settle = settle_time(policy, situation.group, lambda: services_of(ports.clusters.kubernetes(cluster)))
    if settle or policy.settle is not None or situation.instance is None:
        return settle
    try:
        targets = ports.load_balancers.targets(cluster, situation.instance)
    except LeewardError:
        return SETTLES
    return SETTLES if any(target.kind is TargetKind.INSTANCE for target in targets) else settle
