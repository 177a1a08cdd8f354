"""`ports.compute.Network` on EC2: subnets with their free addresses."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from leeward.adapters.aws.batches import chunks, pages
from leeward.adapters.aws.clients import AwsClients
from leeward.adapters.aws.errors import aws_call
from leeward.model.subnet import Subnet

FILTER_VALUES = 200  # EC2 takes at most 200 values in one filter


class Ec2Network:
    """Subnets by filter: a call by id fails as a whole for one that is unknown."""

    def __init__(self, clients: AwsClients) -> None:
        self._clients = clients

    def subnets(self, ids: Iterable[str]) -> Mapping[str, Subnet]:
        """Return the subnets that EC2 knows, with the addresses that are free now."""
        return {subnet.id: subnet for subnet in self._subnets("subnet-id", ids)}

    def subnets_tagged(self, vpcs: Iterable[str], key: str) -> Mapping[str, Subnet]:
        """Return the subnets of the VPCs that have a tag with the key."""
        return {subnet.id: subnet for subnet in self._subnets("vpc-id", vpcs, ("tag-key", key))}

    def _subnets(self, name: str, values: Iterable[str], *more: tuple[str, str]) -> Iterator[Subnet]:
        for chunk in chunks(values, FILTER_VALUES):
            with aws_call("ec2:DescribeSubnets", f"{len(chunk)} with {name} from {chunk[0]}"):
                filters = [(name, chunk), *((key, [value]) for key, value in more)]
                for page in self._pages("describe_subnets", *filters):
                    yield from (Subnet.from_json(raw) for raw in page.get("Subnets", ()))

    def _pages(self, operation: str, *filters: tuple[str, list[str]]) -> Iterator[Mapping[str, Any]]:
        wanted = [{"Name": name, "Values": values} for name, values in filters]
        return pages(self._clients.get("ec2"), operation, Filters=wanted)
