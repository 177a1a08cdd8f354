"""A deployment in order, one cluster in it with one group: a test breaks one thing and asks for the findings."""

from dataclasses import replace

from leeward.doctor.diagnosis import diagnose
from leeward.doctor.facts import Facts
from leeward.doctor.finding import Check, Finding, State
from leeward.doctor.gather import gather
from leeward.model.facts import FactKind, Sheet
from leeward.policy.document import ClusterPolicies
from tests.fakes.builders import CLUSTER, GROUP, PUT_BY_SYNC, a_group, a_node, a_policy, an_instance, our_hook, policies
from tests.fakes.clock import START
from tests.fakes.deployment import WHO, FakeDeployment
from tests.fakes.system import FakeSystem

NODE = "i-0abc"


class Patient:
    """`deployment` and `system` are the fakes behind it; groups are the system's, so that both see the same."""

    def __init__(self, *, serving: tuple[str, ...] = (CLUSTER,), written: ClusterPolicies | None = None) -> None:
        self.system = FakeSystem(
            instances=[an_instance(NODE)],
            groups=[a_group(GROUP, NODE)],
            hooks=[our_hook(heartbeat_timeout=PUT_BY_SYNC)],
            nodes=[a_node(NODE)],
            written=written or policies(a_policy()),
        )
        self.deployment = FakeDeployment(*serving)
        self.rbac = self.deployment.rbac(CLUSTER)
        self.synced()

    def synced(self, *kinds: FactKind, at=START) -> None:
        """fn sync has written down these kinds, all where none is named."""
        for kind in kinds or FactKind:
            self.system.catalog.keep(CLUSTER, kind, Sheet(synced=at, content={}))

    def has_group(self, **changes: object) -> None:
        """Its group as it is now."""
        self.system.groups.by_name[GROUP] = replace(self.system.groups.by_name[GROUP], **changes)

    def facts(self, *, requested_cluster: str | None = None, now=START) -> Facts:
        """What is read of it."""
        self.deployment.listed = list(self.system.groups.by_name.values())
        return gather(self.deployment, lambda _: self.system.ports, WHO, requested_cluster=requested_cluster, now=now)

    def findings(self, **when: object) -> tuple[Finding, ...]:
        """Everything that is said of it."""
        return diagnose(self.facts(**when))

    def troubles(self, **when: object) -> list[Finding]:
        """What is not in order."""
        return [found for found in self.findings(**when) if found.state is not State.OK]

    def trouble(self, check: Check, **when: object) -> Finding:
        """The only thing that is not in order, which is this check's."""
        (found,) = self.troubles(**when)
        assert found.check is check, found
        return found
