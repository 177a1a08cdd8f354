"""Rules about managed node groups: EKS owns their template and sizes, is asked for what operators have asked, and an
upgrade says that it is done only when EKS has brought every node to it."""

from collections.abc import Iterator
from datetime import datetime

from leeward.model.group import Group, GroupInstance
from leeward.ports.eks import ManagedState
from leeward.upgrade.record import ControlRequest
from simulation.aws.managed import SimUpdate
from simulation.facts import News
from simulation.ordered import Ordered
from simulation.view import WorldView

IN_SERVICE = "InService"
LATEST = "$Latest"


class ManagedRules:
    """Rules about managed node groups, with what they have to remember."""

    def __init__(self) -> None:
        self._new = News().of
        self._asked: set[str] = set()  # updates that were judged
        self._ended: dict[str, datetime] = {}

    def written(self, view: WorldView) -> Iterator[str]:
        """Yield changes of a managed node group's template or sizes that we have made through Auto Scaling."""
        for name, what in self._new("written", view.written):
            group = view.groups.get(name)
            if group is not None and group.nodegroup:
                yield f"{name} was given {what}"

    def asked(self, view: WorldView) -> Iterator[str]:
        """Yield updates of ours for which no operator has asked: another version, or by force."""
        if len(self._asked) == len(view.updates):
            return
        for id_, update in view.updates.items():
            if id_ not in self._asked:
                self._asked.add(id_)
                yield from () if update.by_others else _not_asked(id_, update, view)

    def ended(self, view: WorldView) -> Iterator[str]:
        """Yield upgrades that have said that they are done, and are not."""
        for name, record in view.upgrades.items():
            if record.ended is None or self._ended.get(name) == record.ended:
                continue
            self._ended[name] = record.ended
            group = view.groups[name]
            if group.nodegroup and not record.error and record.control is not ControlRequest.ABORT:
                yield from _not_done(group, view)


def _not_asked(id_: str, update: SimUpdate, view: WorldView) -> Iterator[str]:
    group = next((one for one in view.groups.values() if one.nodegroup == update.nodegroup[1]), None)
    orders = [one for one in view.ordered if group is not None and one.group == group.name]
    if group is None or not orders:
        return  # a test has started the upgrade
    version, template_version, force = update.asked
    if version and version not in {one.target for one in orders}:
        yield f"{id_} of {group.name} asks for Kubernetes {version}"
    if template_version and not _named(template_version, update, orders, view):
        yield f"{id_} of {group.name} asks for template version {template_version}"
    policy = view.policies.policy_of(group)
    if force and not (any(one.forced for one in orders) or (policy is not None and policy.drain.force)):
        yield f"{id_} of {group.name} is forced"


def _named(version: str, update: SimUpdate, orders: list[Ordered], view: WorldView) -> bool:
    """Return whether an operator may have meant the version: by its number, as the latest one, by its image, or as one
    before, to which a rollback returns.
    """
    images = view.images_of(update.nodegroup[1])
    same = [one for one in view.updates.values() if one.nodegroup == update.nodegroup]
    before = {"1", *(one.asked[1] for one in same[: same.index(update)])}
    if version in before and any(one.action == "rollback" for one in orders):
        return True
    image = images[int(version) - 1] if version.isdigit() and int(version) <= len(images) else ""
    return any(
        one.target in {version, image} or (one.target == LATEST and version.isdigit() and int(version) >= one.latest)
        for one in orders
    )


def _not_done(group: Group, view: WorldView) -> Iterator[str]:
    """Yield what is missing: EKS' end of the last update, or nodes of another version. While another update runs the
    group launches another version already. A node that was in Standby while EKS replaced the others, or came out of a
    warm pool, is none that EKS had to replace.
    """
    updates = [one for one in view.updates.values() if one.nodegroup[1] == group.nodegroup]
    mine = [one for one in updates if not one.by_others]
    if not mine or mine[-1].state is not ManagedState.SUCCESSFUL:
        yield f"{group.name}: EKS' update is {mine[-1].state.value if mine else 'missing'}"
    elif updates[-1] is mine[-1]:
        wanted, back = group.launch.template, view.back_in_service
        left_out = {*view.reused, *(one for one, at in back.items() if at >= mine[-1].began)}
        for member in group.instances:
            if wanted is not None and _serves(member) and member.template != wanted and member.id not in left_out:
                yield f"{group.name}: {member.id} is of another version than {wanted.version}"


def _serves(member: GroupInstance) -> bool:
    return member.lifecycle == IN_SERVICE and not member.protected
