"""A whole deployment of fakes: one cluster, wired together, with the Ports that the rooms take."""

from collections.abc import Iterable

from leeward.model.facts import FactKind, Sheet
from leeward.model.group import Group, LifecycleHook
from leeward.model.instance import Instance
from leeward.model.node import Node
from leeward.node_template.cache import NodegroupCache
from leeward.policy.document import ClusterPolicies
from leeward.ports import Ports
from simulation.aws.applied_policies import SimPolicyStore
from tests.fakes.builders import CLUSTER, DEPLOYMENT, a_subnet, policies, shifted
from tests.fakes.catalog import FakeCatalog
from tests.fakes.claims import FakeClaims
from tests.fakes.clock import FakeClock
from tests.fakes.clusters import FakeClusters
from tests.fakes.dead_letters import FakeDeadLetters
from tests.fakes.disruptions import FakeDisruptions
from tests.fakes.executions import FakeExecutions, FakeNamedExecutions
from tests.fakes.groups import FakeGroups
from tests.fakes.instances import FakeInstances
from tests.fakes.kubernetes import FakeKubernetes
from tests.fakes.load_balancers import FakeLoadBalancers
from tests.fakes.maxima import FakeMaxima
from tests.fakes.network import FakeLaunchSources, FakeNetwork, FakePriceList
from tests.fakes.nodegroups import FakeNodegroups
from tests.fakes.pauses import FakePauses
from tests.fakes.recovery import FakeRecovery
from tests.fakes.redelivery import FakeRedelivery
from tests.fakes.upgrades import (
    FakeAlarms,
    FakeGroupChanges,
    FakeManagedUpdates,
    FakeServiceLimits,
    FakeTemplates,
    FakeUpgrades,
)

QUEUE_ARN = "arn:aws:sqs:us-east-1:111122223333:leeward-interruption"


class FakeSystem:
    """Each port by its own name, `ports` for the code under test."""

    def __init__(
        self,
        *,
        instances: Iterable[Instance] = (),
        groups: Iterable[Group] = (),
        hooks: Iterable[LifecycleHook] = (),
        nodes: Iterable[Node] = (),
        written: ClusterPolicies | None = None,
        cluster: str = CLUSTER,
        deployment: str = DEPLOYMENT,
        origins: frozenset[tuple[str, str]] = frozenset(),
    ) -> None:
        self.clock = FakeClock()
        self.instances = FakeInstances(instances)
        self.groups = FakeGroups(groups, hooks, self.instances, self.clock)
        self.network = FakeNetwork([a_subnet()])
        self.price_list = FakePriceList()
        self.catalog = FakeCatalog()
        self.nodegroups = FakeNodegroups()
        self.launches = FakeLaunchSources()
        self.said: list[str] = []  # of the templates
        self.kubernetes = FakeKubernetes(nodes, clock=self.clock)
        self.clusters = FakeClusters({cluster: written or policies(cluster=cluster)}, {cluster: self.kubernetes})
        self.claims = FakeClaims(deployment)
        self.executions = FakeExecutions()
        self.dead_letters = FakeDeadLetters()
        self.redelivery = FakeRedelivery()
        self.load_balancers = FakeLoadBalancers()
        self.group_changes = FakeGroupChanges(self.groups)
        self.maxima = FakeMaxima()
        self.templates = FakeTemplates()
        self.managed_updates = FakeManagedUpdates()
        self.service_limits = FakeServiceLimits()
        self.alarms = FakeAlarms()
        self.upgrades = FakeUpgrades()
        self.upgrade_executions = FakeNamedExecutions()
        self.managed_upgrade_executions = FakeNamedExecutions()
        self.disruptions = FakeDisruptions()
        self.disruption_executions = FakeNamedExecutions()
        self.pauses = FakePauses()
        self.policy_store = SimPolicyStore()
        self.recovery = FakeRecovery()
        self.ports = Ports(
            clock=self.clock,
            clusters=self.clusters,
            instances=self.instances,
            network=self.network,
            price_list=self.price_list,
            catalog=self.catalog,
            nodegroups=NodegroupCache(self.nodegroups, self.clock, chance=lambda: 0.0, say=self.said.append),
            launches=self.launches,
            groups=self.groups,
            claims=self.claims,
            executions=self.executions,
            dead_letters=self.dead_letters,
            redelivery=self.redelivery,
            load_balancers=self.load_balancers,
            group_changes=self.group_changes,
            maxima=self.maxima,
            templates=self.templates,
            managed_updates=self.managed_updates,
            service_limits=self.service_limits,
            alarms=self.alarms,
            upgrades=self.upgrades,
            upgrade_executions=self.upgrade_executions,
            managed_upgrade_executions=self.managed_upgrade_executions,
            disruptions=self.disruptions,
            disruption_executions=self.disruption_executions,
            pauses=self.pauses,
            policy_store=self.policy_store,
            recovery=self.recovery,
            deployment=deployment,
            queue_arns=frozenset({QUEUE_ARN}),
            origins=origins,
        )

    def shift(self, *zones: str) -> None:
        """Keep zonal shifts away from these zones, in place of any others, as a poll does."""
        sheet = Sheet(synced=self.clock.now(), content=shifted(*zones).to_json())
        for cluster in self.clusters.names():
            self.catalog.keep(cluster, FactKind.ZONAL_SHIFTS, sheet)
