"""`leeward inspect template`: the next node of a group, as a Node object.

Decides what is read and how the node is printed; `leeward.node_template` builds it."""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from leeward.cli.context import ClusterContext, context_of
from leeward.cli.output import Output, emit, tell
from leeward.cli.tables import Table
from leeward.errors import InvalidInputError, LeewardError
from leeward.model.group import Group
from leeward.model.instance import Instance
from leeward.node_template.build import ExpectedNode, Sources, expected_node, unknown_type
from leeward.node_template.gathering import look_up, sources_of
from leeward.node_template.observed import Observed, observed
from leeward.policy.document import NodePolicy, TemplatePolicy
from leeward.snapshot.gather import read_nodes
from leeward.snapshot.launches import launched_from, ready_nodes

DESCRIPTION = """Shows the node that an Auto Scaling group would launch next, also when it has none: labels, taints,
capacity and allocatable, from its launch template, its tags and, for an EKS managed node group, DescribeNodegroup. Of
several instance types and zones the first is shown, unless options name others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateInputs:
    """Sources and policy of a template."""

    sources: Sources
    policy: TemplatePolicy


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the group, and which of its types and zones."""
    parser.add_argument("group", metavar="GROUP", help="name of the Auto Scaling group")
    parser.add_argument("--zone", metavar="Z", help="this zone of the group's (default: the first)")
    parser.add_argument("--instance-type", metavar="T", help="this type of the group's (default: the first)")
    parser.set_defaults(usual_output=Output.YAML.value)


def run(arguments: argparse.Namespace) -> int:
    """Build the node and print it; assumptions and skipped inputs go to standard error. Return 1 where the instance
    type is not known: the node lacks cpu and memory.
    """
    context = context_of(arguments, "inspect template")
    inputs = inputs_of(context, arguments.group, zone=arguments.zone, instance_type=arguments.instance_type)
    node = expected_node(inputs.sources, inputs.policy.precedence)
    for warning in node.warnings:
        tell(warning)
    document = node.to_json()
    emit(document, arguments.view, lambda: _report(inputs, node, document))
    return 1 if unknown_type(inputs.sources) else 0


def inputs_of(context: ClusterContext, name: str, *, zone: str | None, instance_type: str | None) -> TemplateInputs:
    """Build the inputs of the group with this name. Raises InvalidInputError for an
    unknown group, and for a zone or a type that it cannot launch.
    """
    ports, group = context.ports, context.group(name)
    members = tuple(ports.instances.describe([one.id for one in group.instances]).values())
    policy = ports.clusters.policies(context.cluster).policy_of(group)
    template = policy.template if policy else TemplatePolicy()
    looked = look_up(
        group,
        context.cluster,
        template,
        nodegroups=ports.nodegroups,
        launches=ports.launches,
        running={member.type for member in members} - {""},
    )
    _check("zone", zone, looked.choices.zones)
    _check("instance type", instance_type, looked.choices.types)
    variables = {**(context.facts().cni or {}), **(policy.cni if policy else {})}
    sources = sources_of(looked, ports.launches, variables, zone=zone, instance_type=instance_type)
    seen = _observed(context, group, {member.id: member for member in members}, sources, policy)
    zone_ids = {subnet.zone: subnet.zone_id for subnet in ports.network.subnets(group.subnets).values()}
    return TemplateInputs(sources=replace(sources, zone_ids=zone_ids, observed=seen), policy=template)


def _observed(
    context: ClusterContext,
    group: Group,
    instances: Mapping[str, Instance],
    sources: Sources,
    policy: NodePolicy | None,
) -> Observed | None:
    """Return what the group's nodes show; None without nodes, or where the cluster's API cannot be read: the template
    is then what AWS tells.
    """
    types = sources.choices.types
    if not group.instances or not types:
        return None
    try:
        nodes = read_nodes(context.ports.clusters.kubernetes(context.cluster))
    except LeewardError:
        return None
    ready = ready_nodes(group, nodes, instances, launched_from([group], context.ports.launches))
    return observed(
        ready, types[0], sources.launch, [taint.key for taint in policy.node.startup_taints] if policy else ()
    )


def _check(what: str, asked: str | None, allowed: tuple[str, ...]) -> None:
    """Refuse a choice that the group cannot launch; where the group's choices are unknown, any value is accepted."""
    if asked is not None and allowed and asked not in allowed:
        shown = ", ".join(allowed[:10]) + (" …" if len(allowed) > 10 else "")
        raise InvalidInputError(f"inspect template: found {what} {asked!r}, expected one of the group's: {shown}")


def _report(inputs: TemplateInputs, node: ExpectedNode, document: Mapping[str, Any]) -> list[Table | str]:
    status, spec = document["status"], document["spec"]
    origins = Table(("ATTRIBUTES", "ORIGIN"), kind="attribute")
    for attribute, origin in node.provenance.items():
        origins.add(attribute.value, origin.value)
    title = f"the next node of {inputs.sources.group.name}"
    amounts = Table(("RESOURCE", "CAPACITY", "ALLOCATABLE"), title=title, kind="resource")
    for name, value in status["capacity"].items():
        amounts.add(name, value, status["allocatable"].get(name))
    taints = Table(("TAINT", "VALUE", "EFFECT"), kind="taint")
    for taint in spec.get("taints", ()):
        taints.add(taint["key"], taint.get("value"), taint["effect"])
    labels = Table(("LABEL", "VALUE"), kind="label")
    for key, value in document["metadata"]["labels"].items():
        labels.add(key, value)
    return [amounts, taints, labels, origins]
