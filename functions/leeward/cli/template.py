"""`leeward template`: the next node of a group, as a Node object.

Decides how the node is printed; `leeward.node_template.build` builds it."""

import argparse
import sys
from collections.abc import Mapping
from typing import Any

from rich.console import Group as Rows
from rich.console import RenderableType
from rich.table import Table

from leeward.cli.context import context_of
from leeward.cli.output import Output, emit
from leeward.cli.template_scene import Scene, scene_of
from leeward.node_template.build import expected_node, unknown_type

_DESCRIPTION = """Shows the node that an Auto Scaling group would launch next, also when it has none: labels, taints,
capacity and allocatable, from its launch template, its tags and, for an EKS managed node group, DescribeNodegroup.
Of several instance types and zones the first is shown, unless told. Output is YAML unless told."""


def add_parser(subparsers: Any) -> None:
    """Add the verb, the group, and which of its types and zones."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "template", help="show what the next node of a group would be", description=_DESCRIPTION
    )
    parser.add_argument("group", metavar="GROUP", help="name of the Auto Scaling group")
    parser.add_argument("--zone", metavar="Z", help="this zone of the group's (default: the first)")
    parser.add_argument("--instance-type", metavar="T", help="this type of the group's (default: the first)")
    parser.set_defaults(usual_output=Output.YAML.value)


def run(arguments: argparse.Namespace) -> int:
    """Build the node and print it; assumptions and skipped inputs go to standard error. Return 1 where the instance
    type is not known: the node lacks cpu and memory.
    """
    context = context_of(arguments, "template")
    scene = scene_of(context, arguments.group, zone=arguments.zone, instance_type=arguments.instance_type)
    node = expected_node(scene.sources, scene.policy.precedence)
    for remark in node.remarks:
        print(f"leeward: {remark}", file=sys.stderr)
    document = node.to_json()
    emit(document, arguments.output, lambda: _table(scene, document))
    return 1 if unknown_type(scene.sources) else 0


def _table(scene: Scene, document: Mapping[str, Any]) -> RenderableType:
    status, spec = document["status"], document["spec"]
    amounts = Table(title=f"the next node of {scene.sources.group.name}", title_justify="left", title_style="bold")
    for column in ("resource", "capacity", "allocatable"):
        amounts.add_column(column)
    for name, value in status["capacity"].items():
        amounts.add_row(name, value, status["allocatable"].get(name, ""))
    taints = Table("taint", "value", "effect")
    for taint in spec.get("taints", ()):
        taints.add_row(taint["key"], taint.get("value", ""), taint["effect"])
    labels = Table("label", "value")
    for key, value in document["metadata"]["labels"].items():
        labels.add_row(key, value)
    return Rows(amounts, *((taints,) if spec.get("taints") else ()), labels)
