"""Groups that hold instances now, for readers that load no state of a whole cluster."""

from collections.abc import Mapping

from leeward.cluster.joins import group_name, listed_groups
from leeward.model.group import Group
from leeward.model.instance import Instance
from leeward.ports.autoscaling import Groups


def holding(instance: str, known: Instance | None, groups: Groups) -> tuple[str | None, Group | None]:
    """Return the name of the group that holds the instance, and the group as far as Auto Scaling describes it. `known`:
    the instance as EC2 knows it.
    """
    names, described = holdings({instance: known}, groups)
    name = names.get(instance)
    return name, described.get(name or "")


def holdings(instances: Mapping[str, Instance | None], groups: Groups) -> tuple[Mapping[str, str], Mapping[str, Group]]:
    """Return the name of the group of each instance that one holds, and these groups as far as Auto Scaling describes
    them. The rule is `group_name`'s. An instance that the group of its tag does not list costs a call.
    """
    described = _described({one.group for one in instances.values() if one is not None and one.group}, groups)
    listed, names = listed_groups(described.values()), dict[str, str]()
    for instance, known in instances.items():
        lister = listed.get(instance) or next(iter(groups.lifecycle_of(instance) or ()), None)
        if name := group_name(lister, known):
            names[instance] = name
    return names, {**described, **_described(set(names.values()) - described.keys(), groups)}


def _described(names: set[str], groups: Groups) -> Mapping[str, Group]:
    return groups.describe(sorted(names)) if names else {}
