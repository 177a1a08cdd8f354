"""`leeward inspect zones`: the order in which zones get the next node, those without addresses, and why they differ.

Decides how the report is built and printed; `leeward.placement.zones` decides the order."""

import argparse
import random
from collections.abc import Mapping, Sequence
from typing import Any

from leeward.cli.context import ClusterContext, context_of
from leeward.cli.ips import count
from leeward.cli.nearest import did_you_mean
from leeward.cli.output import emit
from leeward.cli.placement_inputs import Inputs, facts_by_zone, placement_of_cluster
from leeward.cli.tables import Table
from leeward.errors import InvalidInputError
from leeward.model.well_known import INSTANCE_TYPE_LABEL
from leeward.placement.explain import ZoneFacts, explain_zone, imbalance, typical_node
from leeward.placement.verdict import ZoneVerdict
from leeward.placement.zones import judge_zones

DESCRIPTION = """Shows the zones in the order in which the next node would be tried: fewest allocated CPU cores first,
at random among equals (--seed), without zones whose subnets cannot hold the node's pods. Explains why the zones
differ."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the node that the zones are judged for."""
    parser.add_argument("--instance-type", metavar="T", help="of the next node (default: the commonest of the nodes)")
    parser.add_argument(
        "--pods", metavar="P", type=count, help="that need an address there (default: as on the busiest such node)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Judge and print; return 0, also where no zone can take a node."""
    context = context_of(arguments, "inspect zones")
    inputs = Inputs.of(context)
    _check_type(arguments.instance_type, inputs, context)
    scene = placement_of_cluster(inputs, arguments.instance_type, arguments.pods)
    facts = facts_by_zone(inputs, scene)
    verdicts = judge_zones(scene, random.Random(arguments.seed))
    document = to_json(verdicts, facts) | inputs.ages()
    sentences = (*imbalance(verdicts, facts), *inputs.describe_ages(arguments.now))
    emit(document, arguments.view, lambda: _report(document, sentences))
    return 0


def _check_type(name: str | None, inputs: Inputs, context: ClusterContext) -> None:
    """Check that EC2, or a node of the cluster, has the instance type. Raises InvalidInputError."""
    there = sorted({node.labels.get(INSTANCE_TYPE_LABEL, "") for node in inputs.nodes} - {""})
    known = context.ports.launches.instance_types([name]) if name and name not in there else {}
    if name and name not in {*there, *known}:
        hint = did_you_mean(name, [*there, *known])
        raise InvalidInputError(f"inspect zones: --instance-type: found {name!r}, expected an EC2 instance type{hint}")


def to_json(verdicts: Sequence[ZoneVerdict], facts: Mapping[str, ZoneFacts]) -> dict[str, Any]:
    """Return the document that `docs/schema/zones.json` describes."""
    typical = typical_node(facts.values())
    return {
        "zones": [
            {
                "zone": verdict.zone,
                "cores": _cores(verdict.millicores),
                "freeIps": verdict.free_ips,
                "verdict": verdict.standing.value,
                "why": f"{verdict.why}; {explain_zone(facts[verdict.zone], typical)}",
                "boundPods": list(facts[verdict.zone].bound),
            }
            for verdict in verdicts
        ]
    }


def _cores(millicores: int) -> float:
    """Return cores as an integer where they are whole, as programs and people expect."""
    return millicores // 1000 if millicores % 1000 == 0 else millicores / 1000


def _report(document: dict[str, Any], sentences: Sequence[str]) -> list[Table | str]:
    columns = ("ZONE", "CORES", "FREE-IPS", "VERDICT", "BOUND-PODS", "WHY")
    table = Table(columns, wide=frozenset({"BOUND-PODS"}), optional=("CORES",), kind="zone")
    for zone in document["zones"]:
        bound = ",".join(zone["boundPods"])
        table.add(zone["zone"], f"{zone['cores']:g}", zone["freeIps"], zone["verdict"], bound, zone["why"])
    return [table, *sentences]
