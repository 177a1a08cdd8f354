"""Work that a seed gives to disruption runs: policies that expire, empty and consolidate, operators who stop an
execution of theirs, and in worlds without upgrades, owners who let their nodes drift."""

from dataclasses import replace
from datetime import timedelta
from random import Random

from leeward.policy.document import Budget, DisruptionPolicy
from simulation.definitions import DISRUPTION_RUN
from simulation.fleets import Arrival, ArrivalKind, Fleet
from simulation.owners import update_in_console
from simulation.scene import Scene

STOPS_AN_HOUR = 2.0
CHANGES_AN_HOUR = 1.5


def disrupting(fleet: Fleet, random: Random) -> Fleet:
    """Give each policy rules of its own, some with all methods on."""
    policies = fleet.policies
    rules = tuple(replace(one, disruption=_rules(random)) for one in policies.policies)
    return replace(fleet, policies=replace(policies, policies=rules))


def stopped(random: Random, hours: float) -> tuple[Arrival, ...]:
    """Return the moments at which an operator stops the open disruption run."""
    return _moments(ArrivalKind.DISRUPTION_STOPPED, STOPS_AN_HOUR, random, hours)


def changed(random: Random, hours: float) -> tuple[Arrival, ...]:
    """Return the moments at which the owner of a group points it at another image."""
    return _moments(ArrivalKind.TEMPLATE_CHANGED, CHANGES_AN_HOUR, random, hours)


def _moments(kind: ArrivalKind, an_hour: float, random: Random, hours: float) -> tuple[Arrival, ...]:
    found, now = list[Arrival](), random.expovariate(an_hour / 3600)
    while now < hours * 3600:
        found.append(Arrival(at_seconds=round(now, 3), kind=kind, pick=random.getrandbits(31)))
        now += random.expovariate(an_hour / 3600)
    return tuple(found)


def _rules(random: Random) -> DisruptionPolicy:
    expires = random.choice((None, timedelta(minutes=10), timedelta(minutes=20), timedelta(minutes=40)))
    budget = random.choice((Budget(), Budget(nodes=1, percent=False), Budget(nodes=30)))
    return DisruptionPolicy(
        consolidation_policy=random.choice(("WhenEmptyOrUnderutilized", "Balanced", "WhenEmpty")),
        consolidate_after=timedelta(minutes=random.choice((0, 1, 5))),
        expire_after=expires,
        expire_jitter=20 if expires and not budget.percent else 0,
        cooldown=timedelta(minutes=random.choice((0, 1, 5))),
        spot_to_spot=random.random() < 0.3,
        spot_to_spot_minimum_types=1,
        budgets=(budget,),
    )


def stop_disruption(scene: Scene, pick: int) -> None:
    """Stop an execution of disruption, if one is open, as an operator does."""
    machine = scene.system.machines[DISRUPTION_RUN]
    names = sorted(machine.executions)
    if names:
        name = names[pick % len(names)]
        scene.say(f"an operator stops {name}")
        machine.stop(name)


def change_template(scene: Scene, pick: int) -> None:
    """Point a group at a new version with another image, as its owner does: its nodes have drifted. EKS does it for the
    owner of a managed node group.
    """
    groups = list(scene.fleet.groups.values())
    group = groups[pick % len(groups)]
    if update_in_console(scene, group):
        return
    version = group.template.add(f"ami-{len(group.template.images) + 1:017d}")
    scene.say(f"the owner of {group.name} points it at version {version} of its template")
    group.point_at(version)
