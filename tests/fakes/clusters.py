"""The clusters of a deployment in memory."""

from collections.abc import Mapping

from leeward.errors import InvalidPolicyError
from leeward.policy.document import ClusterPolicies
from leeward.ports import Kubernetes
from tests.fakes.calls import Calls
from tests.fakes.kubernetes import FakeKubernetes


class FakeClusters(Calls):
    """`policies_of[name] = …` replaces what is written down; a cluster without any raises InvalidPolicyError."""

    def __init__(self, policies: Mapping[str, ClusterPolicies], apis: Mapping[str, FakeKubernetes]) -> None:
        super().__init__()
        self.policies_of = dict(policies)
        self.apis = dict(apis)

    def names(self) -> tuple[str, ...]:
        """In the settings' order."""
        return tuple(self.apis)

    def policies(self, cluster: str) -> ClusterPolicies:
        """What the test wrote down."""
        self._call("policies")
        if cluster not in self.policies_of:
            raise InvalidPolicyError(f"cluster {cluster}: found no policy, expected at least one")
        return self.policies_of[cluster]

    def kubernetes(self, cluster: str) -> Kubernetes:
        """The cluster's API, always the same one."""
        self._call("kubernetes")
        return self.apis[cluster]
