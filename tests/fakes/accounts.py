"""A deployment of fakes that serves one cluster in each of several accounts, from a hub."""

from collections.abc import Mapping
from dataclasses import replace

from leeward.ports import Ports
from leeward.ports.places import AwsPlace, ports_of_no_account
from tests.fakes.builders import a_group, a_node, a_policy, an_instance, our_hook, policies
from tests.fakes.clusters import FakeClusters
from tests.fakes.system import FakeSystem

HUB, EAST, WEST = "111122223333", "222233334444", "333344445555"
REGIONS = {HUB: "us-east-1", EAST: "us-east-1", WEST: "eu-west-1"}
CLUSTERS = {HUB: "blue", EAST: "east", WEST: "west"}
INSTANCES = {HUB: "i-0b1e", EAST: "i-0ea5", WEST: "i-0e57"}


class FakeAccounts:
    """`of[account]` is what each account has, with a cluster, a group `web-a` and an instance in it; the hub's alone
    has records and executions.
    """

    def __init__(self) -> None:
        self.of: Mapping[str, FakeSystem] = {account: _account(account) for account in CLUSTERS}
        self.hub = self.of[HUB]
        for system in self.of.values():
            system.groups.clock = system.kubernetes.clock = self.hub.clock
            system.claims, system.executions = self.hub.claims, self.hub.executions
        clusters = FakeClusters(
            {name: self.of[account].clusters.policies_of[name] for account, name in CLUSTERS.items()},
            {name: self.of[account].kubernetes for account, name in CLUSTERS.items()},
        )
        self.ports: Ports = replace(
            self.hub.ports,
            **ports_of_no_account().by_name(),
            clusters=clusters,
            origins=frozenset(REGIONS.items()),
            places=tuple(
                AwsPlace(
                    account=account,
                    region=REGIONS[account],
                    clusters=(CLUSTERS[account],),
                    aws=system.ports,
                )
                for account, system in self.of.items()
            ),
        )

    def refuse(self, account: str, error: Exception) -> None:
        """Every call into the account fails, as where its role cannot be assumed."""
        system = self.of[account]
        for port in (system.instances, system.groups, system.network):
            for method in ("describe", "of_clusters", "hooks", "subnets", "block_ends", "impaired"):
                port.fail(method, error)


def _account(account: str) -> FakeSystem:
    cluster, instance = CLUSTERS[account], INSTANCES[account]
    return FakeSystem(
        instances=[an_instance(instance, cluster=cluster)],
        groups=[a_group("web-a", instance, cluster=cluster)],
        hooks=[our_hook()],
        nodes=[a_node(instance)],
        written=policies(a_policy(), cluster=cluster),
        cluster=cluster,
    )
