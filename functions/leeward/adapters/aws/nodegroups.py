"""`ports.eks.Nodegroups` on Amazon EKS."""

from leeward.adapters.aws.clients import AwsClients
from leeward.adapters.aws.errors import aws_call
from leeward.errors import InvalidInputError
from leeward.model.nodegroup import Nodegroup


class EksNodegroups:
    """Node groups by DescribeNodegroup, one call each time: `leeward.node_template.cache` keeps the answers. `region`:
    the cluster's, the home Region when None.
    """

    def __init__(self, clients: AwsClients, region: str | None = None) -> None:
        self._clients = clients
        self._region = region

    def describe(self, cluster: str, name: str) -> Nodegroup:
        """Describe it. Raises ObjectGoneError for an unknown one, InvalidInputError for an unknown taint effect."""
        with aws_call("eks:DescribeNodegroup", f"{cluster}/{name}"):
            answer = self._clients.get("eks", region=self._region).describe_nodegroup(
                clusterName=cluster, nodegroupName=name
            )
        try:
            return Nodegroup.from_json(answer["nodegroup"])
        except InvalidInputError as error:
            raise InvalidInputError(f"eks:DescribeNodegroup on {cluster}/{name}: {error}") from error
