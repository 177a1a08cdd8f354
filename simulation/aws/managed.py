"""`ports.ManagedUpdates`: EKS' own updates of managed node groups, as far as anybody outside can see them.

Generated fleets have no managed node groups; a test or a story names them in `groups`. An update ends when somebody
says how (`end`), or after `lasts` seconds by itself."""

from dataclasses import dataclass, field

from leeward.errors import InvalidInputError, ObjectGoneError
from leeward.ports_upgrade import ManagedState, ManagedUpdate
from simulation.timeline import Timeline


@dataclass(slots=True, kw_only=True)
class SimUpdate:
    """One update. `asked`: version, template version, force."""

    id: str
    nodegroup: tuple[str, str]
    asked: tuple[str | None, str | None, bool]
    state: ManagedState = ManagedState.IN_PROGRESS
    errors: tuple[str, ...] = field(default=())


class SimManagedUpdates:
    """`groups`: (cluster, node group) of those that there are; `updates` by id in the order of their beginning."""

    def __init__(self, timeline: Timeline | None = None, lasts: float = 900.0) -> None:
        self.groups: set[tuple[str, str]] = set()
        self.updates: dict[str, SimUpdate] = {}
        self._by_token: dict[str, str] = {}
        self._timeline, self._lasts = timeline, lasts

    def start(
        self,
        cluster: str,
        nodegroup: str,
        *,
        token: str,
        version: str | None = None,
        template_version: str | None = None,
        force: bool = False,
    ) -> str:
        """The same token gives the same update. Raises ObjectGoneError, InvalidInputError while another one runs."""
        if token in self._by_token:
            return self._by_token[token]
        which = cluster, nodegroup
        if which not in self.groups:
            raise ObjectGoneError(f"ResourceNotFoundException: no node group {nodegroup} in {cluster}")
        if any(one.nodegroup == which and one.state is ManagedState.IN_PROGRESS for one in self.updates.values()):
            raise InvalidInputError(f"ResourceInUseException: {nodegroup} has an update that runs")
        made = SimUpdate(
            id=f"update-{len(self.updates) + 1}", nodegroup=which, asked=(version, template_version, force)
        )
        self.updates[made.id] = made
        self._by_token[token] = made.id
        if self._timeline is not None:
            self._timeline.after(self._lasts, lambda: self.end(made.id), "EKS ends an update")
        return made.id

    def look(self, cluster: str, nodegroup: str, update: str) -> ManagedUpdate:
        """How it stands. Raises ObjectGoneError."""
        found = self.updates.get(update)
        if found is None or found.nodegroup != (cluster, nodegroup):
            raise ObjectGoneError(f"ResourceNotFoundException: no update {update} of {nodegroup} in {cluster}")
        return ManagedUpdate(id=found.id, state=found.state, errors=found.errors)

    def end(self, update: str, state: ManagedState = ManagedState.SUCCESSFUL, *errors: str) -> None:
        """One that runs ends so; one that has ended stays as it is."""
        found = self.updates[update]
        if found.state is ManagedState.IN_PROGRESS:
            found.state, found.errors = state, errors
