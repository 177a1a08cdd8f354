"""Subject of a claim: the instance as it was when it was claimed."""

from leeward.model.instance import Instance, cluster_of
from leeward.model.termination import Subject


def subject_of(instance: Instance, cluster: str, *, group: str | None = None, node: str | None = None) -> Subject:
    """Build the subject of a claim. `cluster`: where it was found, unless its tags name it; `group`: the one that lists
    it, else the one of its tag; `node`: the name of its Node.
    """
    return Subject(
        instance=instance.id,
        cluster=cluster_of(instance.tags, [cluster]) or cluster,
        group=group or instance.group,
        zone=instance.zone,
        subnet=instance.subnet,
        instance_type=instance.type,
        capacity_type=instance.capacity_type,
        state=instance.state,
        networks=instance.networks,
        node=node,
    )
