"""Policies of a generated cluster. Each part is drawn where `fleets` asks for it, so that earlier draws stay."""

from dataclasses import replace
from datetime import timedelta
from random import Random

from leeward.policy.document import (
    Canary,
    ClusterPolicies,
    ClusterSettings,
    DrainPolicy,
    GroupSelector,
    InterruptionPolicy,
    NodePolicy,
    Rebalance,
    UpdatePolicy,
)

MAX_SURGE, SURGING = 6, (2, 5)  # nodes: as many as there are zones at the most; for these values of maxUnavailable


def policies_of(random: Random, cluster: str) -> ClusterPolicies:
    """Return how groups are drained and interrupted: `batch` may be forced, `app` never, no policy selects `legacy`."""
    batch = DrainPolicy(
        timeout=timedelta(minutes=random.choice((2, 5))),
        force=random.random() < 0.5,
        termination_grace_period=random.choice((None, timedelta(minutes=10))),
        settle=timedelta(seconds=random.choice((0, 10))),
    )
    app = DrainPolicy(
        timeout=timedelta(minutes=random.choice((3, 10, 15))), settle=timedelta(seconds=random.choice((0, 30, 60)))
    )
    policies = tuple(
        NodePolicy(
            name=name,
            selector=GroupSelector(groups=(f"{name}*",)),
            interruption=InterruptionPolicy(rebalance=random.choice(tuple(Rebalance))),
            drain=drain,
        )
        for name, drain in (("batch", batch), ("app", app))
    )
    return ClusterPolicies(settings=ClusterSettings(name=cluster), policies=policies)


def with_updates(random: Random, policies: ClusterPolicies) -> ClusterPolicies:
    """Draw how each policy upgrades its groups."""
    return replace(policies, policies=tuple(replace(one, update=_update(random)) for one in policies.policies))


def with_surges(random: Random, policies: ClusterPolicies) -> ClusterPolicies:
    """Let half of the policies give a workload of one pod a second one first. Drawn last: fleets stay what
    they were.
    """
    surging = [
        replace(one, drain=replace(one.drain, surge_single_replicas=random.random() < 0.5)) for one in policies.policies
    ]
    return replace(policies, policies=tuple(surging))


def _update(random: Random) -> UpdatePolicy:
    percentage = random.choice((None, None, 10, 33))
    update = UpdatePolicy(
        max_unavailable=random.choice((1, 1, 2, 5)) if percentage is None else None,
        max_unavailable_percentage=percentage,
        strategy=random.choice(("DEFAULT", "DEFAULT", "DEFAULT", "MINIMAL", "INCREMENTAL")),
        order=random.choice(("waves", "random", "zone", "age")),
        canary=Canary(nodes=random.choice((0, 0, 0, 1)), bake=timedelta(minutes=5)),
    )
    if update.strategy == "DEFAULT" and update.max_unavailable in SURGING:
        update = replace(update, max_surge=MAX_SURGE)
    return replace(update, terminate="first") if update.order == "age" else update
