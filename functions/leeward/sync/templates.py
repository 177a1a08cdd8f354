"""Templates of the nodes that each selected group would launch now, gathered so that a replacement needs no further
call.

Decides which groups are read and what stays if one cannot be read; `leeward.node_template` decides the rest."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from leeward.errors import LeewardError
from leeward.isolation import isolate_errors
from leeward.model.facts import ClusterFacts, GroupTemplate, templates_content
from leeward.model.group import Group
from leeward.node_template.build import expected_node
from leeward.node_template.gathering import look_up, sources_of
from leeward.policy.document import ClusterPolicies, NodePolicy
from leeward.ports.compute import LaunchSources
from leeward.ports.eks import KnownNodegroups


def expected_templates(
    cluster: str,
    groups: Iterable[Group],
    policies: ClusterPolicies,
    before: ClusterFacts,
    nodegroups: KnownNodegroups,
    launches: LaunchSources,
) -> Mapping[str, Any]:
    """Return the sheet of the selected groups. A group that cannot be read is named and keeps its earlier template; it
    does not age the others. Raises LeewardError if none could be read.
    """
    found: dict[str, GroupTemplate] = {}
    failed: dict[str, LeewardError] = {}
    for group in groups:
        policy = policies.policy_of(group)
        if policy is None:
            continue
        with isolate_errors(partial(failed.__setitem__, group.name)):
            found[group.name] = _template(group, cluster, policy, before, nodegroups, launches)
    if failed and not found:
        raise next(iter(failed.values()))
    kept = {name: before.templates[name] for name in failed if name in before.templates}
    return templates_content({**found, **kept}, {name: f"{name}: {error}" for name, error in failed.items()})


def _template(
    group: Group,
    cluster: str,
    policy: NodePolicy,
    before: ClusterFacts,
    nodegroups: KnownNodegroups,
    launches: LaunchSources,
) -> GroupTemplate:
    looked = look_up(
        group,
        cluster,
        policy.template,
        nodegroups=nodegroups,
        launches=launches,
        running=group.running_types,
    )
    sources = sources_of(looked, launches, {**(before.cni or {}), **policy.cni})
    node = expected_node(sources, policy.template.precedence)
    capacity = looked.choices.capacity
    return GroupTemplate(
        types=looked.choices.types,
        zones=looked.choices.zones,
        capacity=capacity.value if capacity else None,
        node=node.to_json(),
        warnings=node.warnings,
    )
