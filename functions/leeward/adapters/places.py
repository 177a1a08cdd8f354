"""Accounts and Regions of a deployment that serves clusters outside its own: their clients and their ports.

Calls no AWS API. Not imported where all clusters are in the deployment's own account and Region."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from leeward.adapters.aws.member import MemberRole
from leeward.ports.places import AwsPlace, ports_of_no_account

if TYPE_CHECKING:
    from leeward.adapters.aws.clients import AwsClients
    from leeward.adapters.settings import ServedCluster
    from leeward.ports import AwsPorts
    from leeward.ports.clock import Clock


class Accounts:
    """AWS clients by cluster: the process's own, those of the role that it assumes in the cluster's account, or those
    of a caller who has credentials of that account.
    """

    nowhere = ports_of_no_account()

    def __init__(self, clients: AwsClients, clock: Clock, *, session: str, there: AwsClients | None = None) -> None:
        """`session`: name of the sessions in the accounts' trails. `there`: clients that act in the one account and
        Region of all clusters, where no role is assumed.
        """
        self._clients = clients
        self._there = there
        self._clock = clock
        self._session = session
        self._made: dict[tuple[str, str], AwsClients] = {}

    def clients_of(self, cluster: ServedCluster) -> AwsClients:
        """Return the clients for a cluster; clusters of one role and Region share a session."""
        if self._there is not None:
            return self._there
        if not cluster.member_role:
            return self._clients
        key = cluster.member_role, cluster.region
        if key not in self._made:
            role = MemberRole(
                self._clients,
                self._clock,
                role=cluster.member_role,
                external_id=cluster.external_id,
                region=cluster.region,
                session=self._session,
            )
            self._made[key] = self._clients.signed_by(role.credentials(), region=cluster.region)
        return self._made[key]

    def places(
        self, clusters: Sequence[ServedCluster], ports_of: Callable[[AwsClients, str], AwsPorts]
    ) -> tuple[AwsPlace, ...]:
        """Return the accounts and Regions of the clusters. `ports_of`: builds the AWS ports over one set of
        clients, with what stands before the names of groups in the table's keys: `ACCOUNT/REGION/`, nothing for the
        deployment's own.
        """
        there: dict[tuple[str, str], list[ServedCluster]] = {}
        for cluster in clusters:
            there.setdefault((cluster.account, cluster.region), []).append(cluster)
        return tuple(
            AwsPlace(
                account=account,
                region=region,
                clusters=tuple(cluster.name for cluster in served),
                aws=ports_of(self.clients_of(served[0]), f"{account}/{region}/" if served[0].member_role else ""),
            )
            for (account, region), served in there.items()
        )
