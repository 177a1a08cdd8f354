"""Group that holds one instance now, for readers that load no state of a whole cluster."""

from leeward.cluster.joins import group_name
from leeward.model.group import Group
from leeward.model.instance import Instance
from leeward.ports.autoscaling import Groups


def holding(instance: str, known: Instance | None, groups: Groups) -> tuple[str | None, Group | None]:
    """Return the name of the group that holds the instance, and the group as far as Auto Scaling describes it. The rule
    is `group_name`'s. A second call is made only where the group of the tag does not list the instance. `known`: the
    instance as EC2 knows it.
    """
    tagged = known.group if known is not None else None
    group = groups.describe([tagged]).get(tagged) if tagged else None
    if group is not None and any(member.id == instance for member in group.instances):
        return tagged, group
    listed = next(iter(groups.lifecycle_of(instance) or ()), None)
    name = group_name(listed, known)
    if name is None or name == tagged:
        return name, group
    return name, groups.describe([name]).get(name)
