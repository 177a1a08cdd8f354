"""`ports.recovery.RecoveryController` on the ARC zonal shift API.

Decides the name of the managed resource: the ARN of the cluster."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from leeward.adapters.aws.clients import AwsClients
from leeward.adapters.aws.errors import aws_call
from leeward.adapters.settings import ServedCluster
from leeward.errors import ObjectGoneError
from leeward.model.zonal_shift import ZonalShift, applied_shifts

SERVICE = "arc-zonal-shift"


class ArcRecoveryController:
    """Zonal shifts of the served clusters, each in its own Region."""

    def __init__(self, clients: AwsClients, served: Iterable[ServedCluster], home: str) -> None:
        """`home`: any ARN of the deployment, for the partition and for a cluster without an account of its own."""
        self._clients = clients
        self._served = {cluster.name: cluster for cluster in served}
        self._partition, self._account = home.split(":")[1], home.split(":")[4]

    def shifts(self, cluster: str, now: datetime) -> Sequence[ZonalShift]:
        """Read the managed resource with one call. ARC answers ResourceNotFoundException for a cluster without zonal
        shift.
        """
        served = self._served[cluster]
        home = self._clients.region
        region = served.region or home
        arn = f"arn:{self._partition}:eks:{region}:{served.account or self._account}:cluster/{cluster}"
        try:
            with aws_call(f"{SERVICE}:GetManagedResource", cluster):
                client = self._clients.get(SERVICE, region=None if region == home else region)  # one client for home
                answer = client.get_managed_resource(resourceIdentifier=arn)
        except ObjectGoneError:
            return ()
        return applied_shifts(answer, now)
