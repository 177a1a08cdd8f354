"""`ports.records.PolicyStore` on DynamoDB: one item a cluster, `policies#CLUSTER`, written at the version that was
read."""

from dataclasses import replace

from leeward.adapters.aws.table import DynamoTable
from leeward.errors import ObjectGoneError
from leeward.model.codec import decode, encode
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
        return decode(AppliedPolicies, item) if item is not None else AppliedPolicies(cluster=cluster)

    def write(self, policies: AppliedPolicies) -> AppliedPolicies | None:
        """Write the item with one conditional PutItem."""
        written = replace(policies, version=policies.version + 1)
        return written if self._table.put_kept({"pk": f"{POLICIES}#{policies.cluster}", **encode(written)}) else None
