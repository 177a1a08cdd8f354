"""Instances that EC2 takes, as their Auto Scaling groups list them: enough to claim and drain them while EC2 does not
answer. A spot warning comes two minutes ahead, and an outage or a throttled account may last as long."""

from collections.abc import Collection, Mapping, Sequence

from leeward.errors import LeewardError
from leeward.interruption.recorded import TAKEN
from leeward.isolation import attempt
from leeward.model import well_known
from leeward.model.instance import CapacityType, Instance
from leeward.model.message import InterruptionMessage, MessageKind
from leeward.model.node import LONG_AGO
from leeward.ports.autoscaling import Groups


def listed_by_groups(
    messages: Sequence[InterruptionMessage], ids: Collection[str], clusters: Sequence[str], groups: Groups
) -> Mapping[str, Instance]:
    """Return those of these instances that EC2 takes and that a group of the clusters lists; none where Auto Scaling
    does not answer either. One that another message of the batch is about as well waits for EC2, as every other does.
    One call, however many instances: in a storm a call for each would be throttled.
    """
    others = {name for message in messages if message.kind not in TAKEN for name in message.instances}
    wanted = set(ids) - others
    described = attempt(lambda: groups.of_clusters(clusters)) if wanted else ()
    if isinstance(described, LeewardError):
        return {}
    spot = {name for message in messages if message.kind is MessageKind.SPOT_INTERRUPTION for name in message.instances}
    return {
        member.id: Instance(
            id=member.id,
            state="running",  # not confirmed: the claim records no state, and each step asks EC2 itself
            type=member.type,
            zone=member.zone,
            subnet="",
            capacity_type=CapacityType.SPOT if member.id in spot else CapacityType.ON_DEMAND,
            tags={well_known.GROUP_TAG: group.name},
            launched=LONG_AGO,
        )
        for group in described
        for member in group.instances
        if member.id in wanted
    }
