"""What happens between accounts: one refuses its role for a while, and one sends messages about another's instances."""

from collections.abc import Callable, Sequence
from random import Random

from leeward.model.group import TERMINATING
from simulation.accounts import Account, Accounts
from simulation.aws import events
from simulation.aws.compute import IN_SERVICE, SimInstance
from simulation.plans import Player
from simulation.scene import Scene

REFUSES_EVERY, REFUSES_FOR = 900.0, (20.0, 240.0)  # seconds
SPEAKS_EVERY = 120.0
RARER = 20.0  # times as long a pause in a world that lasts weeks


def between_accounts(
    scenes: Sequence[Scene], accounts: Accounts, random: Random, emit: Callable[[events.Event], None]
) -> list[Player]:
    """Return the players of a world with several accounts, none for one."""
    hub, *members = accounts.of
    if not members:
        return []
    refusing = (scene for scene in scenes if scene.cluster_name not in hub.clusters)
    refusals = (Refusals(scene, accounts.account_of(scene.cluster_name), random) for scene in refusing)
    return [*refusals, Strangers(scenes, accounts, random, emit)]


class Refusals:
    """Player that lets a member account refuse AssumeRole now and then: neither AWS nor its cluster is reached, for the
    same session signs in to both. `over` ends it.
    """

    def __init__(self, scene: Scene, account: Account, random: Random) -> None:
        self._scene, self._account, self._random = scene, account, random
        self._until, self._over = 0.0, False

    def begin(self) -> None:
        """Begin to play."""
        self._scene.timeline.every(_pause(self._scene, REFUSES_EVERY), self._refuse, "an account refuses its role")

    @property
    def over(self) -> bool:
        """True once the account refuses nothing any more."""
        return self._over

    @over.setter
    def over(self, over: bool) -> None:
        self._over = over
        if over:
            self._account.denied = False

    def _refuse(self) -> None:
        if self._over:
            return
        lasts, gate = self._random.uniform(*REFUSES_FOR), self._scene.injector
        self._scene.say(f"account {self._account.account} refuses its role for {lasts:.0f} s")
        self._account.denied, self._until = True, self._scene.timeline.now() + lasts
        self._account.refusals.append((self._scene.timeline.now(), self._until))
        gate.count("AssumeRole refused")
        gate.api_down_until = max(gate.api_down_until, self._until)
        self._scene.timeline.after(lasts, self._trust, "an account trusts again")

    def _trust(self) -> None:
        self._account.denied = False


class Strangers:
    """Player that sends messages of one account about another's instances: warnings about running ones, and lifecycle
    actions for those whose termination is open. `emit` puts an event on the sender's bus. `over` ends it.
    """

    def __init__(
        self, scenes: Sequence[Scene], accounts: Accounts, random: Random, emit: Callable[[events.Event], None]
    ) -> None:
        self._scenes, self._accounts, self._random, self._emit = scenes, accounts, random, emit
        self.over = False

    def begin(self) -> None:
        """Begin to play."""
        scene = self._scenes[0]
        scene.timeline.every(_pause(scene, SPEAKS_EVERY), self._speak, "another account's message")

    def _speak(self) -> None:
        if self.over:
            return
        scene = self._random.choice(self._scenes)
        members = [m for m in scene.fleet.instances.values() if m.joined and not m.gone]
        open_ = [m for m in members if m.id in scene.system.claims.index.since]
        serving = [m for m in members if m.lifecycle == IN_SERVICE]
        if open_ and (not serving or self._random.random() < 0.8):
            member = self._random.choice(open_)
            self._send(scene, member, self._action(scene, member))
        elif serving:
            member = self._random.choice(serving)
            warning = events.spot_warning(scene.fleet.emit_id(), member.id, scene.timeline.instant())
            self._send(scene, member, warning)

    def _action(self, scene: Scene, member: SimInstance) -> events.Event | None:
        group = scene.fleet.groups[member.group]
        hooks = [hook for hook, _ in group.hooks.values() if hook.transition == TERMINATING]
        if not hooks:
            return None
        id_, token = scene.fleet.emit_id(), scene.fleet.emit_id()
        return events.lifecycle_action(id_, self._random.choice(hooks), member.id, token, scene.timeline.instant())

    def _send(self, scene: Scene, member: SimInstance, event: events.Event | None) -> None:
        if event is None:
            return
        home = self._accounts.account_of(scene.cluster_name)
        self._accounts.named_by_strangers |= {member.id, member.group}
        sender = next(account for account in self._accounts.of if account is not home)
        scene.say(f"account {sender.account} sends {event['detail-type']}: {events.gist(event)}")
        self._emit({**event, "account": sender.account, "region": sender.region})


def _pause(scene: Scene, seconds: float) -> float:
    return seconds if scene.days_ahead is None else seconds * RARER
