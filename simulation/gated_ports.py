"""Ports of the simulated deployment: each model behind the gate that injects faults into its calls."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from leeward.node_template.cache import NodegroupCache
from leeward.policy.document import ClusterPolicies
from leeward.ports import Ports
from leeward.ports.eks import Nodegroups
from leeward.ports.executions import NamedExecutions
from leeward.ports.kubernetes import Clusters
from simulation.aws import events
from simulation.aws.executions import SimExecutions, SimNamedExecutions
from simulation.aws.network import KnownSimNodegroups, SimLaunchSources, SimNetwork, SimNodegroups, SimPriceList
from simulation.aws.ports import SimInstances
from simulation.aws.queue import SimDeadLetters, SimRedelivery
from simulation.definitions import DISRUPTION_RUN, MANAGED_NODE_GROUP_UPGRADE, NODE_GROUP_UPGRADE
from simulation.faults import FaultyPort, Injector
from simulation.invocations import Invocations, SimClock
from simulation.timeline import Timeline

if TYPE_CHECKING:
    from simulation.system import System


def ports_of(
    system: "System", gate: Injector, invocations: Invocations, timeline: Timeline, said: Callable[[str], None]
) -> Ports:
    """Return the ports of the system's functions; calls of each pass the gate."""
    fleet = system.fleet

    def gated(port: object, name: str) -> Any:
        return FaultyPort(port, name, gate)

    def executions(machine: str, name: str) -> NamedExecutions:
        return cast(NamedExecutions, FaultyPort(SimNamedExecutions(system.machines.get(machine)), name, gate))

    redelivery = SimRedelivery(system.queue, {events.STATE_CHANGES_ARN: system.state_changes})
    launches = SimLaunchSources(fleet, lambda: system.templates.readable)
    clock = SimClock(timeline, invocations, gate.clock_skew)
    return Ports(
        clock=clock,
        clusters=_clusters(system, gate),
        instances=gated(SimInstances(fleet, clock, invocations.environment), "instances"),
        network=gated(SimNetwork(fleet, gate), "network"),
        price_list=gated(SimPriceList(), "price list"),
        catalog=gated(system.catalog, "catalog"),
        nodegroups=_known_nodegroups(system, gate, invocations, timeline, said),
        launches=gated(launches, "launches"),
        groups=gated(system.groups, "groups"),
        claims=gated(system.claims, "claims"),
        executions=gated(SimExecutions(system.machine), "executions"),
        dead_letters=gated(SimDeadLetters(system.queue), "dead letters"),
        redelivery=gated(redelivery, "redelivery"),
        load_balancers=gated(system.balancers, "load balancers"),
        group_changes=gated(system.changes, "group changes"),
        templates=gated(system.templates, "templates"),
        managed_updates=gated(system.managed_updates, "managed updates"),
        service_limits=gated(system.service_limits, "service_limits"),
        alarms=gated(system.alarms, "alarms"),
        upgrades=gated(system.upgrades, "upgrades"),
        upgrade_executions=executions(NODE_GROUP_UPGRADE, "upgrade executions"),
        managed_upgrade_executions=executions(MANAGED_NODE_GROUP_UPGRADE, "upgrade executions"),
        maxima=gated(system.maxima, "maxima"),
        disruptions=gated(system.disruptions, "disruptions"),
        disruption_executions=executions(DISRUPTION_RUN, "run executions"),
        pauses=gated(system.pauses, "pauses"),
        policy_store=gated(system.policy_store, "policies"),
        recovery=gated(system.recovery, "recovery"),
        deployment=events.DEPLOYMENT,
        queue_arns=frozenset({events.QUEUE_ARN}),
        origins=frozenset({(events.ACCOUNT, events.REGION)}),
    )


def _clusters(system: "System", gate: Injector) -> Clusters:
    clusters = system.clusters

    def policies(cluster: str) -> ClusterPolicies:
        """Record the read of the switch that may be behind it; no fault is drawn for a cache."""
        gate.called.add((gate.caller().rpartition("-")[0], "clusters", "policies"))
        return clusters.policies(cluster)

    local = {"names": clusters.names, "kubernetes": clusters.kubernetes, "policies": policies}
    return cast(Clusters, FaultyPort(clusters, "clusters", gate, local))


def _known_nodegroups(
    system: "System", gate: Injector, invocations: Invocations, timeline: Timeline, said: Callable[[str], None]
) -> KnownSimNodegroups:
    """Return the managed node groups, of which each execution environment has a cache of its own."""
    described = cast(Nodegroups, FaultyPort(SimNodegroups(system.managed_updates.nodegroup), "nodegroups", gate))
    true_time = SimClock(timeline, invocations)
    return KnownSimNodegroups(
        lambda: NodegroupCache(described, true_time, chance=lambda: 0.0, say=said), invocations.environment
    )
