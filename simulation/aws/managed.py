"""`ports.eks.ManagedUpdates`: EKS' managed node groups and their updates.

A fleet's groups are made managed (`managed_fleet.py`), or a test or a story makes them known. Where a group of the
fleet stands behind one, EKS rolls it (`eks_roll.py`); else an update ends when the test says how (`end`), or after
`lasts` s."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Unpack

from leeward.errors import InvalidInputError, ObjectGoneError
from leeward.model.nodegroup import Nodegroup
from leeward.ports.eks import ManagedState, ManagedUpdate, UpdateWanted
from simulation.timeline import Timeline

Ended = Callable[[tuple[str, ...]], None]
NODEGROUP, IMAGE = "eks.amazonaws.com/nodegroup", "eks.amazonaws.com/nodegroup-image"
NOT_BACK = "You cannot roll back a node group to an earlier Kubernetes version or AMI version"
SOURCE, SOURCE_VERSION = "eks.amazonaws.com/sourceLaunchTemplateId", "eks.amazonaws.com/sourceLaunchTemplateVersion"


@dataclass(slots=True, kw_only=True)
class SimUpdate:
    """One update. `asked`: version, template version, force; `began` and `ended` in seconds since 1970; `by_others`:
    started past the product.
    """

    id: str
    nodegroup: tuple[str, str]
    asked: tuple[str | None, str | None, bool]
    state: ManagedState = ManagedState.IN_PROGRESS
    errors: tuple[str, ...] = field(default=())
    began: float = 0.0
    ended: float | None = None
    by_others: bool = False


class SimManagedUpdates:
    """Managed node groups and their updates. `described` by (cluster, node group): those that exist; `updates` by id in
    the order of their beginning; `roll` begins the work of one, and returns whether there is anything to do.
    `takes_back`: EKS takes a group back to an earlier release; `releases`: those that were asked for.
    """

    def __init__(self, timeline: Timeline | None = None, lasts: float = 900.0) -> None:
        self.described: dict[tuple[str, str], Nodegroup] = {}
        self.updates: dict[str, SimUpdate] = {}
        self.roll: Callable[[SimUpdate, Nodegroup, Ended], bool] = lambda _update, _nodegroup, _ended: False
        self._by_token: dict[str, tuple[str, tuple[str | None, str | None, bool]]] = {}
        self._timeline, self._lasts = timeline, lasts
        self.takes_back = False
        self.releases: list[str] = []

    def know(self, cluster: str, name: str, **more: Any) -> None:
        """Make a node group known; fields as `Nodegroup` has them."""
        given = {"status": "ACTIVE", **more}
        self.described[cluster, name] = replace(Nodegroup(name=name, cluster=cluster), **given)

    def start(self, cluster: str, nodegroup: str, *, token: str, **wanted: Unpack[UpdateWanted]) -> str:
        """Start an update; the same token gives the same update. Raises ObjectGoneError, InvalidInputError while
        another one runs, for a token that was used for something else, for a template version of a group without a
        template, and for an earlier release, unless `takes_back`.
        """
        if (release := wanted.get("release")) is not None:
            self.releases.append(release)
            if not self.takes_back:
                raise InvalidInputError(f"InvalidParameterException: {NOT_BACK}")
        asked = wanted.get("version"), wanted.get("template_version"), wanted.get("force", False)
        if token in self._by_token:
            known, before = self._by_token[token]
            if before != asked:
                raise InvalidInputError(f"InvalidParameterException: client request token {token} was used before")
            return known
        which = cluster, nodegroup
        there = self.nodegroup(cluster, nodegroup)
        if any(one.nodegroup == which and one.state is ManagedState.IN_PROGRESS for one in self.updates.values()):
            raise InvalidInputError(f"ResourceInUseException: {nodegroup} has an update that runs")
        made = SimUpdate(id=f"update-{len(self.updates) + 1}", nodegroup=which, asked=asked, began=self._now())
        self.updates[made.id] = made
        self._by_token[token] = made.id, asked
        self.described[which] = replace(there, status="UPDATING")
        if not self.roll(made, there, lambda errors: self._rolled(made.id, errors)) and self._timeline is not None:
            self._timeline.after(self._lasts, lambda: self.end(made.id), "EKS ends an update")
        return made.id

    def start_by_others(self, nodegroup: Nodegroup, *, template_version: str | None = None) -> None:
        """Start an update as an owner does in the console; nothing happens while another one runs."""
        token = f"console-{len(self.updates) + 1}"
        with suppress(InvalidInputError):
            made = self.start(nodegroup.cluster, nodegroup.name, token=token, template_version=template_version)
            self.updates[made].by_others = True

    def of_group(self, group: str) -> Nodegroup | None:
        """Return the node group behind an Auto Scaling group, None for a self-managed one."""
        return next((one for one in self.described.values() if group in one.groups), None)

    def look(self, cluster: str, nodegroup: str, update: str) -> ManagedUpdate:
        """Return the current state of the update. Raises ObjectGoneError."""
        found = self.updates.get(update)
        if found is None or found.nodegroup != (cluster, nodegroup):
            raise ObjectGoneError(f"ResourceNotFoundException: no update {update} of {nodegroup} in {cluster}")
        return ManagedUpdate(id=found.id, state=found.state, errors=found.errors)

    def nodegroup(self, cluster: str, name: str) -> Nodegroup:
        """Return the current node group. Raises ObjectGoneError."""
        if (cluster, name) not in self.described:
            raise ObjectGoneError(f"ResourceNotFoundException: no node group {name} in {cluster}")
        return self.described[cluster, name]

    def end(self, update: str, state: ManagedState = ManagedState.SUCCESSFUL, *errors: str) -> None:
        """End a running update in that state; one that has ended stays as it is."""
        found = self.updates[update]
        if found.state is not ManagedState.IN_PROGRESS:
            return
        found.state, found.errors, found.ended = state, errors, self._now()
        there, (version, template_version, _) = self.described[found.nodegroup], found.asked
        if state is ManagedState.SUCCESSFUL:
            template = there.template
            if template is not None and template_version is not None:
                template = template[0], template_version
            there = replace(there, version=version or there.version, template=template)
        self.described[found.nodegroup] = replace(there, status="ACTIVE")

    def labels_of(self, group: str, image: str, source: str) -> Mapping[str, str]:
        """Return the labels that EKS puts on a node of the Auto Scaling group, which was launched with that image,
        copied from that version of the user's template; none where no node group is behind it.
        """
        found = self.of_group(group)
        if found is None:
            return {}
        if found.template is None:
            return {NODEGROUP: found.name, IMAGE: image}
        return {NODEGROUP: found.name, SOURCE: found.template[0], SOURCE_VERSION: source}

    def _now(self) -> float:
        return self._timeline.now() if self._timeline is not None else 0.0

    def _rolled(self, update: str, errors: tuple[str, ...]) -> None:
        self.end(update, ManagedState.FAILED if errors else ManagedState.SUCCESSFUL, *errors)
