"""`ports.records.PolicyStore` on DynamoDB: one item a cluster, `policies#CLUSTER`, written at the version that was
read."""

from dataclasses import replace

from leeward.adapters.aws.table import DynamoTable, Item
from leeward.errors import ObjectGoneError
from leeward.model.times import format_instant, parse_instant
from leeward.policy.document import AppliedPolicies

POLICIES = "policies"  # first part of an item's key


class DynamoPolicies:
    """Applied policies in the table `leeward`. Items stay: a version that begins again would be met twice."""

    def __init__(self, table: DynamoTable) -> None:
        self._table = table

    def read(self, cluster: str) -> AppliedPolicies:
        """Read the item with one GetItem, strongly consistent. A table that does not exist holds no policies."""
        try:
            item = self._table.get(f"{POLICIES}#{cluster}")
        except ObjectGoneError:
            item = None
        if item is None:
            return AppliedPolicies(cluster=cluster)
        return AppliedPolicies(
            cluster=cluster,
            version=int(item["version"]),
            documents=tuple((str(one["name"]), str(one["document"])) for one in item["documents"]),
            by=str(item["by"]),
            at=parse_instant(str(item["at"])),
        )

    def write(self, policies: AppliedPolicies) -> AppliedPolicies | None:
        """Write the item with one conditional PutItem."""
        written = replace(policies, version=policies.version + 1)
        return written if self._table.put_kept(_item(written)) else None


def _item(policies: AppliedPolicies) -> Item:
    return {
        "pk": f"{POLICIES}#{policies.cluster}",
        "version": policies.version,
        "documents": [{"name": name, "document": text} for name, text in policies.documents],
        "by": policies.by,
        "at": format_instant(policies.at) if policies.at is not None else "",
    }
