"""Check of launch templates: Leeward's roles launch only from those that carry a configured cluster's tag."""

from collections.abc import Iterator, Mapping

from leeward.doctor.checks.groups import selected
from leeward.doctor.facts import InspectedCluster
from leeward.doctor.finding import About, Check, Finding
from leeward.doctor.reading import UnreadFact
from leeward.model import well_known
from leeward.model.group import Group

REFUSED = "launches from it, and upgrades with --ami, are refused: the group replaces its nodes itself"


def template_ids(group: Group) -> tuple[str, ...]:
    """Return the ids of the launch templates that the group launches from, those of its overrides included."""
    references = (group.launch.template, *(one.template for one in group.launch.overrides))
    return tuple(dict.fromkeys(one.id for one in references if one is not None and one.id))


def template_tags(cluster: InspectedCluster) -> Iterator[Finding]:
    """Check that each launch template of a selected group carries the cluster's tag (`infra/launch_permissions.py`)."""
    about, tags = About(Check.TEMPLATE_TAGS, f"cluster {cluster.name}"), cluster.template_tags
    if isinstance(tags, UnreadFact):
        yield about.unknown(tags)
        return
    groups: dict[str, list[str]] = {}
    for group, _ in selected(cluster):
        for template in template_ids(group):
            groups.setdefault(template, []).append(group.name)
    untagged = {one: names for one, names in groups.items() if not _allows(cluster.name, tags.get(one, {}))}
    for template, names in sorted(untagged.items()):
        key = well_known.CLUSTER_TAG_PREFIX + cluster.name
        found = f"its tag {key} is {tags[template][key]!r}" if key in tags.get(template, {}) else f"it has no tag {key}"
        yield About(Check.TEMPLATE_TAGS, f"launch template {template} of group {', '.join(sorted(names))}").warning(
            f"{found}: {REFUSED}", f"aws ec2 create-tags --resources {template} --tags Key={key},Value=owned"
        )
    if not untagged:
        yield about.ok(f"{len(groups)} launch templates carry its tag")


def _allows(cluster: str, tags: Mapping[str, str]) -> bool:
    key = well_known.CLUSTER_TAG_PREFIX + cluster
    return tags.get(key) in {"owned", "shared"} or tags.get(well_known.EKS_CLUSTER_TAGS[0]) == cluster
