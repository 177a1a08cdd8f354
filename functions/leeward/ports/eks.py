"""Ports to Amazon EKS: managed node groups and their updates."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, TypedDict, Unpack

if TYPE_CHECKING:
    from leeward.model.nodegroup import Nodegroup


class Nodegroups(Protocol):
    """EKS' managed node groups."""

    def describe(self, cluster: str, name: str) -> Nodegroup:
        """Return the node group as EKS describes it now. Raises ObjectGoneError, and InvalidInputError for an unusable
        answer.
        """
        ...


class KnownNodegroups(Protocol):
    """Managed node groups, kept for a while (`leeward.node_template.cache`)."""

    def get(self, cluster: str, name: str, lasts: timedelta) -> Nodegroup | None:
        """Return the node group, None when it cannot be read: then the tags of its group alone are
        used. Never raises.
        """
        ...


class ManagedState(StrEnum):
    """State of an update in EKS."""

    IN_PROGRESS = "InProgress"
    SUCCESSFUL = "Successful"
    FAILED = "Failed"
    CANCELLED = "Cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedUpdate:
    """One update of a managed node group. `errors`: EKS' codes with their messages and resources, as sentences."""

    id: str
    state: ManagedState
    errors: tuple[str, ...] = ()


class UpdateWanted(TypedDict, total=False):
    """Target of an update; what is absent or None is the latest."""

    version: str | None  # of Kubernetes
    release: str | None  # of EKS' image
    template_version: str | None  # of the node group's own launch template
    force: bool


class ManagedUpdates(Protocol):
    """The port to EKS' UpdateNodegroupVersion. Leeward never writes a managed group through the Auto Scaling API."""

    def start(self, cluster: str, nodegroup: str, *, token: str, **wanted: Unpack[UpdateWanted]) -> str:
        """Start the update and return its id; the same token gives the same update. Raises TerminalError where EKS
        refuses it.
        """
        ...

    def look(self, cluster: str, nodegroup: str, update: str) -> ManagedUpdate:
        """Return the current state of the update. Raises ObjectGoneError."""
        ...

    def nodegroup(self, cluster: str, name: str) -> Nodegroup:
        """Return the node group as EKS describes it now. Raises ObjectGoneError, InvalidInputError for an unusable
        answer.
        """
        ...
