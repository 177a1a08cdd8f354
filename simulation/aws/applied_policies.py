"""`ports.records.PolicyStore` in memory: one item a cluster, with the table's conditional writes."""

from dataclasses import replace

from leeward.policy.document import AppliedPolicies


class SimPolicyStore:
    """Applied policies. `records` by cluster."""

    def __init__(self) -> None:
        self.records: dict[str, AppliedPolicies] = {}

    def read(self, cluster: str) -> AppliedPolicies:
        """Return the cluster's current record."""
        return self.records.get(cluster, AppliedPolicies(cluster=cluster))

    def write(self, policies: AppliedPolicies) -> AppliedPolicies | None:
        """Write the record, only at the version that the caller read; None otherwise."""
        if policies.version != self.read(policies.cluster).version:
            return None
        self.records[policies.cluster] = replace(policies, version=policies.version + 1)
        return self.records[policies.cluster]
