"""Inputs of a node template: the group and its sources.

Decides what is read; `leeward.node_template` decides what follows from it."""

from dataclasses import dataclass

from leeward.cli.context import ClusterContext
from leeward.errors import InvalidInputError
from leeward.node_template.build import Sources
from leeward.node_template.gathering import look_up, sources_of
from leeward.policy.document import TemplatePolicy
from leeward.policy.selection import policy_for


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Sources and policy of a template."""

    sources: Sources
    policy: TemplatePolicy


def scene_of(context: ClusterContext, name: str, *, zone: str | None, instance_type: str | None) -> Scene:
    """Build the scene of the group with this name; the cluster's own API is not called. Raises InvalidInputError for an
    unknown group, and for a zone or a type that it cannot launch.
    """
    ports, group = context.ports, context.group(name)
    members = ports.instances.describe([one.id for one in group.instances]).values()
    policy = policy_for(ports.clusters.policies(context.cluster).policies, group.name, group.tags)
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
    return Scene(sources=sources, policy=template)


def _check(what: str, asked: str | None, allowed: tuple[str, ...]) -> None:
    """Refuse a choice that the group cannot launch; where the group's choices are unknown, any value is accepted."""
    if asked is not None and allowed and asked not in allowed:
        shown = ", ".join(allowed[:10]) + (" …" if len(allowed) > 10 else "")
        raise InvalidInputError(f"template: found {what} {asked!r}, expected one of the group's: {shown}")
