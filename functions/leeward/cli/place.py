"""`leeward inspect place`: the subnets that new nodes of a group would use.

Decides how the result is printed; `leeward.placement.zones` makes the choice."""

import argparse
import random
from collections.abc import Sequence
from typing import Any

from leeward.cli.context import context_of
from leeward.cli.ips import count
from leeward.cli.output import emit
from leeward.cli.placement_inputs import Inputs, placement_of_group
from leeward.cli.tables import Table
from leeward.model.counts import count_of
from leeward.placement.verdict import Choice, Placement
from leeward.placement.zones import place

DESCRIPTION = """Chooses subnets for N new nodes of an Auto Scaling group, each with P pods that need an address: the
zone with the fewest allocated CPU cores, in it the subnet with the most free addresses. Where addresses cannot be
counted (the answer says why) the subnet is chosen at random (--seed)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the group, and the nodes to place."""
    parser.add_argument("group", metavar="GROUP", help="name of the Auto Scaling group")
    parser.add_argument("--count", metavar="N", type=_nodes, required=True, help="nodes, 1 to 1000")
    parser.add_argument("--pods", metavar="P", type=count, required=True, help="pods on each that need an address")
    parser.add_argument("--zones", metavar="A,B", type=_zones, default=(), help="only these zones of the group's")


def _nodes(text: str) -> int:
    number = count(text)
    if not 1 <= number <= 1000:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected a whole number, 1 to 1000")
    return number


def _zones(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise argparse.ArgumentTypeError(f"found {text!r}, expected zones such as us-east-1a,us-east-1b")
    return names


def run(arguments: argparse.Namespace) -> int:
    """Choose and print the subnets; return 1 when no node can be placed."""
    inputs = Inputs.of(context_of(arguments, "inspect place"))
    scene = placement_of_group(inputs, arguments.group, arguments.pods, arguments.zones)
    placement = place(scene, arguments.count, random.Random(arguments.seed))
    document = to_json(placement) | inputs.ages()
    ages = inputs.describe_ages(arguments.now)
    emit(document, arguments.view, lambda: _report(arguments.group, document, placement, ages))
    return int(not placement.choices)


def to_json(placement: Placement) -> dict[str, Any]:
    """Return the document that `docs/schema/place.json` describes. Subnets are in the order in
    which they were first chosen.
    """
    chosen: dict[str, list[Choice]] = {}
    for choice in placement.choices:
        chosen.setdefault(choice.subnet, []).append(choice)
    return {
        "subnets": [
            {
                "subnet": subnet,
                "zone": choices[0].zone,
                "count": len(choices),
                "freeIps": choices[0].free_ips,
                "why": choices[0].why,
            }
            for subnet, choices in chosen.items()
        ],
        "refused": [{"zone": verdict.zone, "why": verdict.why} for verdict in placement.refused],
    }


def _report(group: str, document: dict[str, Any], placement: Placement, ages: Sequence[str]) -> list[Table | str]:
    title = f"{group}: {len(placement.choices)} of {count_of(placement.wanted, 'node')} placed"
    table = Table(("SUBNET", "ZONE", "NODES", "FREE-IPS", "WHY"), optional=("FREE-IPS",), kind="subnet")
    for entry in document["subnets"]:
        table.add(entry["subnet"], entry["zone"], entry["count"], entry["freeIps"], entry["why"])
    for entry in document["refused"]:
        table.add(None, entry["zone"], 0, None, entry["why"], names=())
    return [title, table, *(() if placement.complete else (placement.sentence,)), *ages]
