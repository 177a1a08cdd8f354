"""Rules that must hold between the accounts and Regions of one deployment: each call is made where its cluster is, and
a message acts on nothing outside of the account that has sent it."""

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, Protocol

from simulation.accounts import Accounts, Misdirected
from simulation.facts import News
from simulation.message_rules import parsed
from simulation.rule import Rule

OF_EVERY_PLACE = "upgrades.read"  # the table is asked for the group of an execution that has ended, by each place's key
BY_NAME = {"instances.describe", "groups.describe"}
"""Calls with which an account is asked for what an operator has named without its cluster, or a message from there."""


class SeveralAccounts(Protocol):
    """View of a world with several accounts."""

    accounts: Accounts

    @property
    def acknowledged(self) -> Sequence[tuple[str, str]]:
        """Messages as (message id, body)."""
        ...

    @property
    def named_by_operators(self) -> Set[str]:
        """Instances and groups with which operators have started executions, without a cluster."""
        ...

    def known_causes(self, instance: str) -> Sequence[str]:
        """Return the ids of the causes in the instance's record."""
        ...


class AccountRules:
    """Rules for the accounts of one world, one object for each run."""

    def __init__(self, view: SeveralAccounts) -> None:
        self._view, self._news = view, News()

    def check(self) -> Iterator[tuple[Rule, str]]:
        """Yield each violation since the last call."""
        for call in self._news.of("misdirected", self._view.accounts.misdirected):
            if not self._looks_up(call):
                yield Rule.ACCOUNT, f"{call.call} in {call.account} names {call.name}, which is {call.cluster}'s"
        for id_, body in self._news.of("acknowledged", self._view.acknowledged):
            for instance, cause in self._foreign(parsed(body)):
                if any(known.startswith(cause) for known in self._view.known_causes(instance)):
                    yield Rule.SENDER, f"{id_} about {instance}, which its account does not have"

    def _looks_up(self, call: Misdirected) -> bool:
        strangers = self._view.accounts.named_by_strangers
        named = call.name in strangers or call.name in self._view.named_by_operators
        return call.call == OF_EVERY_PLACE or (call.call in BY_NAME and named)

    def _foreign(self, message: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
        """Yield (instance, how its cause's id begins) where the message comes from another account."""
        detail = (message or {}).get("detail") or {}
        instance = detail.get("instance-id") or detail.get("EC2InstanceId") or ""
        cluster = self._view.accounts.cluster_of(instance)
        if message is None or cluster is None:
            return
        account = self._view.accounts.account_of(cluster)
        if (message.get("account"), message.get("region")) != (account.account, account.region):
            yield instance, detail.get("LifecycleActionToken") or message["id"]
