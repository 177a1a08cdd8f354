"""Labels and extended resources that every node of a group has and that nothing which boots it names.

Decides that pods which need them do not block an upgrade: device and feature discovery label new nodes as they have
labelled the old ones, and an upgrade to other user data could else never begin. It is a warning, because a person may
have put them there. What the user data of old nodes names and the new version does not is lost: a blocker."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from leeward.node_template.observed import of_unknown_source
from leeward.scheduling.nodes import NodeSpec, NodeTemplate
from leeward.scheduling.pods import PodSpec
from leeward.snapshot.launches import ready_nodes
from leeward.upgrade.preflight.findings import Code, Finding, warning
from leeward.upgrade.preflight.model import Preflight

_MOST_NAMED = 5
_FIX = (
    "see that what puts it there (device or feature discovery) runs on the new nodes too, or set it in the new "
    "version; with update.canary a single node drains first"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unproven:
    """Labels by zone, and amounts of extended resources. False where there are none."""

    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    resources: Mapping[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.labels or self.resources)

    def on(self, templates: Iterable[NodeTemplate]) -> tuple[NodeTemplate, ...]:
        """Return the templates with all of them; what a template has of its own stays."""
        return tuple(
            replace(
                template,
                node=replace(template.node, allocatable={**self.resources, **template.node.allocatable}),
                offerings=tuple(
                    replace(offering, labels={**self.labels.get(offering.zone, {}), **offering.labels})
                    for offering in template.offerings
                ),
            )
            for template in templates
        )

    def findings(self, pods: Iterable[PodSpec]) -> Iterator[Finding]:
        """Report in one warning the pods that a new node can host only with some of them."""
        asked = {pod.key: self._asked(pod) for pod in pods}
        if not asked:
            return
        first, also = min(asked), f" (and {len(asked) - 1} more)" if len(asked) > 1 else ""
        named = ", ".join(sorted(set[str]().union(*asked.values()))[:_MOST_NAMED])
        message = (
            f"it needs{also} a node with {named}: every node of the group has that, neither user data nor tags name "
            "it, and whether a new node gets it is not known"
        )
        yield warning(Code.LABELS_MISSING, f"pod {first}", message, _FIX)

    def _asked(self, pod: PodSpec) -> set[str]:
        spread = (rule.key for rule in pod.needs.spread)
        keys = pod.needs.nodes.keys.union(spread, (term.key for term in pod.needs.near))
        labels = {(key, value) for labels in self.labels.values() for key, value in labels.items()}
        resources = {name for name, _ in pod.needs.requests if name in self.resources}
        return {f"{key}={value}" for key, value in labels if key in keys} | resources


def unproven_of(preflight: Preflight, node: NodeSpec) -> Unproven:
    """Return those of the group's Ready nodes. `node`: of the new version; what is known of it is left out."""
    snapshot = preflight.snapshot
    specs = {spec.name: spec for spec in snapshot.node_specs}
    nodes = [(one, specs[one.name]) for one in snapshot.nodes if one.name in specs]
    ready = ready_nodes(preflight.group, nodes, snapshot.instances, snapshot.launched_from)
    by_zone, resources = of_unknown_source(ready)
    known = {*node.labels, *(key for variant in node.variants for key, _ in variant)}
    labels = {zone: {key: found[key] for key in found if key not in known} for zone, found in by_zone.items()}
    return Unproven(
        labels={zone: found for zone, found in labels.items() if found},
        resources={name: amount for name, amount in resources.items() if name not in node.allocatable},
    )
