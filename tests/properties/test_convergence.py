"""How near consolidation, round after round, comes to the cheapest fleet: up to 8 nodes whose load has halved.

Each round is what `plan_round` decides on the snapshot as it then is; its nodes go, its replacement comes up, and the
pods are placed as the plan's scheduler placed them, until no method has anything to do. Budgets are unlimited. The
measure is the exact answer of `tests/unit/disruption/exact_packing.py`."""

import random
import sys
from statistics import mean, median

import pytest

from leeward.disruption.plan import plan_round
from leeward.model.quantity import amounts
from tests.unit.disruption.exact_packing import Offer, cheapest
from tests.unit.disruption.fleet import ROOM, ZONES, a_fleet

SHAPES = ((250, 256), (500, 1024), (800, 512), (1200, 2048), (1900, 3000))  # thousandths of a core, MiB
MOST_ROUNDS = 30


def halved(seed):
    """Three to eight nodes of one to four groups, each filled to between half and nearly all, then every second pod
    gone.
    """
    chance = random.Random(seed)
    fleet = a_fleet()
    kinds = sorted(chance.sample(sorted(ROOM), chance.randint(1, len(ROOM))))
    for kind in kinds:
        fleet.group(kind, kind)
    pods = []
    for number in range(chance.randint(3, 8)):
        kind = chance.choice(kinds)
        fleet.node(f"n{number}", group=kind, zone=chance.choice(ZONES))
        room = {"cpu": 0.95, "memory": 0.95}
        room = {name: share * amounts(ROOM[kind][0])[name] for name, share in room.items()}
        target = chance.uniform(0.5, 0.95) * amounts(ROOM[kind][0])["cpu"]
        while target > 0:
            fitting = [s for s in SHAPES if s[0] <= room["cpu"] and s[1] * 2**20 <= room["memory"]]
            if not fitting:
                break
            shape = chance.choice(fitting)
            room = {"cpu": room["cpu"] - shape[0], "memory": room["memory"] - shape[1] * 2**20}
            target -= shape[0]
            pods.append((f"p{len(pods)}", f"n{number}", shape))
    for kind in kinds:
        there = sum(one["group"] == kind for one in fleet.instances.values())
        fleet.groups[kind]["min"] = min(there, chance.choice([0, 0, 0, 1]))
    for name, node, (cpu, memory) in chance.sample(pods, -(-len(pods) // 2)):
        fleet.pod(name, node, cpu=f"{cpu}m", memory=f"{memory}Mi")
    return fleet


def carried_out(fleet, command, number):
    """The nodes are gone, their replacement is there, the pods are where the plan's scheduler has put them."""
    fleet.nodes = [raw for raw in fleet.nodes if raw["metadata"]["name"] not in command.nodes]
    for name in command.nodes:
        del fleet.instances[f"i-{name}"]
    for one in command.replacements:
        (kind,) = one.types
        fleet.node(f"r{number}", group=one.group, type=kind, zone=one.zones[0])
    there = {raw["metadata"]["name"] for raw in fleet.nodes}
    for raw in fleet.pods:
        where = command.placements.get(f"shop/{raw['metadata']['name']}", raw["spec"]["nodeName"])
        raw["spec"]["nodeName"] = where if where in there else f"r{number}"


def settled(fleet):
    """Rounds until nothing is left to do; how many it took."""
    for number in range(MOST_ROUNDS):
        commands = plan_round(fleet.snapshot()).commands
        if not commands:
            return number
        for command in commands:
            carried_out(fleet, command, number)
    raise AssertionError(f"still busy after {MOST_ROUNDS} rounds")


def price_of(fleet):
    snapshot = fleet.snapshot()
    return sum(snapshot.price_of(node) for node in snapshot.nodes)


def best_price(fleet):
    def vector(raw):
        found = amounts(raw, down=True)
        return found["cpu"], found["memory"], found.get("pods", 1)

    offers = [Offer(room=vector(ROOM[n][0]), price=ROOM[n][1], minimum=one["min"]) for n, one in fleet.groups.items()]
    pods = [vector(raw["spec"]["containers"][0]["resources"]["requests"]) for raw in fleet.pods]
    return cheapest(pods, offers)


def ratio(seed):
    """What the fleet costs in the end, as a multiple of the cheapest."""
    fleet = halved(seed)
    settled(fleet)
    return price_of(fleet) / best_price(fleet)


def told(found):
    """Median, mean, worst, and how many are within a tenth of the cheapest."""
    within = sum(one <= 1.1 for one in found)
    return (
        f"{len(found)} fleets whose load has halved: median {median(found):.2f}, mean {mean(found):.3f}, worst "
        f"{max(found):.2f} x the cheapest, {within} within a tenth of it"
    )


def check(found):
    assert min(found) >= 1 - 1e-9, "cheaper than the cheapest: the exact answer is wrong"
    assert median(found) == pytest.approx(1.0), told(found)
    assert mean(found) <= 1.005, told(found)


def test_thirty_fleets_whose_load_has_halved_end_within_a_tenth_of_the_cheapest():
    """And those of the two hundred in which the command that saves most leads furthest from it, first."""
    found = [ratio(seed) for seed in (95, 93, 116, 148, *range(30))]
    check(found)
    assert max(found) <= 1.1, told(found)


@pytest.mark.long
def test_two_hundred_fleets_whose_load_has_halved_end_within_a_tenth_of_the_cheapest_but_for_one(capsys):
    """The one: four nodes of eight cores become two, four of one core and one of eight would do. Commands launch one
    node at most and remove a dearer one (docs/features.md, K8, K9), so that there can be no more than three small ones.
    """
    found = [ratio(seed) for seed in range(200)]
    with capsys.disabled():
        sys.stdout.write(f"\n{told(found)}\n")
    check(found)
    assert [seed for seed, one in enumerate(found) if one > 1.1] == [143], told(found)
    assert max(found) <= 4 / 3 + 1e-9, told(found)
