"""A deployment over several accounts: for each a local AWS and a cluster, joined as AWS joins accounts.

The first is the hub, on which the functions run. They reach the others through roles that the member stacks make, and
the others' rules forward events to the hub's bus."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local.demo import scenario
from local.stack import LocalStack


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Account to play, with one cluster in one Region."""

    account: str
    region: str
    cluster: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalAccounts:
    """Running accounts; `members` by the names of their clusters."""

    hub: LocalStack
    members: Mapping[str, LocalStack]

    def settings(self, policies: Mapping[str, str]) -> dict[str, Any]:
        """Return the settings of the deployment. `policies`: a file by cluster, instead of the demo's."""
        everywhere = (self.hub, *self.members.values())
        return {
            "clusters": [self._cluster(stack, policies.get(stack.cluster)) for stack in everywhere],
            "nodeRoles": [f"arn:aws:iam::{stack.account}:role/nodes" for stack in everywhere],
        }

    def deploy(self, policies: Mapping[str, str]) -> None:
        """Deploy the hub, then the stack of each other account there."""
        settings = self.settings(policies)
        self.hub.deploy(settings, "Leeward")
        for stack in self.members.values():
            stack.deploy(settings, f"Leeward-member-{stack.account}-{stack.region}")

    def _cluster(self, stack: LocalStack, policies: str | None) -> dict[str, Any]:
        (known,) = scenario.settings(stack)["clusters"]
        place = {**known, "account": stack.account, "region": stack.region}
        place |= {"policies": [policies]} if policies is not None else {}
        if stack is self.hub:
            return place
        role = f"arn:aws:iam::{stack.account}:role/leeward-member"
        return {**place, "roleArn": role, "externalId": external_id(stack)}


def external_id(stack: LocalStack) -> str:
    """Return the external id that the hub's functions give in this account."""
    return f"leeward-{stack.cluster}-{stack.account[:4]}"


@contextmanager
def running(directory: Path, hub: Account, *members: Account, **pace: float) -> Iterator[LocalAccounts]:
    """Start every account and join them. `pace`: those of `LocalStack`."""
    with ExitStack() as started:
        first = started.enter_context(LocalStack(directory=directory / hub.cluster, **_of(hub), **pace))  # type: ignore[arg-type]
        others = {
            member.cluster: started.enter_context(
                LocalStack(directory=directory / member.cluster, sts=first.endpoint, **_of(member), **pace)  # type: ignore[arg-type]
            )
            for member in members
        }
        stacks = (first, *others.values())
        for stack in stacks:
            beside = [
                {"account": other.account, "region": other.region, "endpoint": other.endpoint}
                for other in stacks
                if other is not stack
            ]
            stack.control("PUT", "accounts", {"accounts": beside})
        yield LocalAccounts(hub=first, members=others)


def _of(account: Account) -> dict[str, str]:
    return {"account": account.account, "region": account.region, "cluster": account.cluster}
