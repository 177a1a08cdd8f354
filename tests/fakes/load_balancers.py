"""Load balancers in memory: targets that a test registers, and takes out again."""

from collections.abc import Sequence

from leeward.model.instance import Instance
from leeward.model.load_balancing import LoadBalancerTarget, is_of
from tests.fakes.calls import Calls


class FakeLoadBalancers(Calls):
    """`registered` are those of all instances."""

    def __init__(self) -> None:
        super().__init__()
        self.registered: list[LoadBalancerTarget] = []

    def targets(self, _cluster: str, instance: Instance) -> Sequence[LoadBalancerTarget]:
        """Those at the instance."""
        self._call("targets")
        return tuple(target for target in self.registered if target.registered and is_of(target, instance))
