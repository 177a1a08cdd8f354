"""`ports.Instances` on EC2."""

from collections.abc import Iterable, Mapping

from leeward.adapters.aws.batches import chunks, pages
from leeward.adapters.aws.clients import AwsClients
from leeward.adapters.aws.errors import aws_call
from leeward.model.instance import Instance

FILTER_VALUES = 200  # EC2 takes at most 200 values in one filter


class Ec2Instances:
    """DescribeInstances by filter: asking by InstanceIds fails as a whole for one unknown id."""

    def __init__(self, clients: AwsClients) -> None:
        self._clients = clients

    def describe(self, ids: Iterable[str]) -> Mapping[str, Instance]:
        """Those that EC2 knows, by id; AWS calls grow with the ids / 200."""
        found: dict[str, Instance] = {}
        for chunk in chunks(ids, FILTER_VALUES):
            with aws_call("ec2:DescribeInstances", f"{len(chunk)} instances from {chunk[0]}"):
                arguments = {"Filters": [{"Name": "instance-id", "Values": chunk}]}
                for page in pages(self._clients.get("ec2"), "describe_instances", **arguments):
                    for reservation in page.get("Reservations", ()):
                        for raw in reservation.get("Instances", ()):
                            found[raw["InstanceId"]] = Instance.from_json(raw)
        return found
