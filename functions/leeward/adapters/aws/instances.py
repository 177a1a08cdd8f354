"""`ports.compute.Instances` on EC2."""

from collections.abc import Iterable, Mapping

from leeward.adapters.aws.batches import chunks, pages
from leeward.adapters.aws.clients import AwsClients
from leeward.adapters.aws.errors import aws_call
from leeward.model.impairment import IMPAIRED, Impairment
from leeward.model.instance import Instance

FILTER_VALUES = 200  # EC2 takes at most 200 values in one filter
CHECKS = ("system-status.status", "instance-status.status", "attached-ebs-status.status")


class Ec2Instances:
    """Instances by DescribeInstances with a filter: a call by InstanceIds fails as a whole for one unknown id."""

    def __init__(self, clients: AwsClients) -> None:
        self._clients = clients

    def describe(self, ids: Iterable[str]) -> Mapping[str, Instance]:
        """Return the instances that EC2 knows, by id; AWS calls grow with the ids / 200."""
        found: dict[str, Instance] = {}
        for chunk in chunks(ids, FILTER_VALUES):
            with aws_call("ec2:DescribeInstances", f"{len(chunk)} instances from {chunk[0]}"):
                arguments = {"Filters": [{"Name": "instance-id", "Values": chunk}]}
                for page in pages(self._clients.get("ec2"), "describe_instances", **arguments):
                    for reservation in page.get("Reservations", ()):
                        for raw in reservation.get("Instances", ()):
                            found[raw["InstanceId"]] = Instance.from_json(raw)
        return found

    def impaired(self) -> Mapping[str, Impairment]:
        """Return impaired instances, with one call for each kind of check, because EC2 joins filters with AND; each
        returns only those that fail it.
        """
        found: dict[str, Impairment] = {}
        for check in CHECKS:
            with aws_call("ec2:DescribeInstanceStatus", check):
                arguments = {"Filters": [{"Name": check, "Values": [IMPAIRED]}]}
                for page in pages(self._clients.get("ec2"), "describe_instance_status", **arguments):
                    known = (Impairment.from_json(raw) for raw in page.get("InstanceStatuses", ()))
                    found.update((one.instance, one) for one in known if one is not None)
        return found
