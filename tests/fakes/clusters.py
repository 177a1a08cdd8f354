"""The clusters of a deployment in memory."""

from collections.abc import Mapping
from typing import Any, cast

from leeward.errors import ClusterUnreachableError, InvalidPolicyError
from leeward.policy.document import ClusterPolicies
from leeward.ports.kubernetes import Kubernetes
from leeward.time_budget import TimeBudget
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

    def kubernetes(self, cluster: str, *, within: TimeBudget | None = None) -> Kubernetes:
        """The cluster's API, always the same one; with a budget, behind it."""
        self._call("kubernetes")
        api = self.apis[cluster]
        return api if within is None else cast(Kubernetes, BudgetedApi(api, within))


class BudgetedApi:
    """A fake API behind a budget: a call that takes too long (`FakeKubernetes.seconds_a_call`) takes what is left."""

    def __init__(self, api: FakeKubernetes, budget: TimeBudget) -> None:
        self._api, self._budget = api, budget

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._api, name)
        if not callable(call):
            return call

        def bounded(*args: Any, **named: Any) -> Any:
            needed, left = self._api.seconds_a_call.get(name, self._api.seconds_a_call.get("*", 0.0)), self._budget.left
            self._api.take_time(min(needed, left))
            if left <= 0 or needed > left:
                raise ClusterUnreachableError(f"{name}: no answer in time")
            return call(*args, **named)

        return bounded
