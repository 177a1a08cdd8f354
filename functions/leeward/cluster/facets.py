"""Facets of a cluster's state: a value that was read, or the reason why it is missing.

A missing facet is never an empty one: no nodes listed is a cluster without nodes, an API server that does not answer is
`Unavailable`. Code that can do without a facet says so by `known_or`; code that cannot takes `required`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from leeward.errors import ClusterGoneError, FacetUnavailableError, LeewardError
from leeward.isolation import attempt

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Known(Generic[T]):
    """Value that was read."""

    value: T


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Missing value; `reason` in one sentence. `gone`: EKS does not know the cluster, so it is never read again."""

    reason: str
    gone: bool = False


Facet: TypeAlias = Known[T] | Unavailable
NOT_LOADED = Unavailable("it was not loaded")


def known_or(facet: Facet[T], default: T) -> T:
    """Return the value, or the default if the facet is missing."""
    return facet.value if isinstance(facet, Known) else default


def required(facet: Facet[T], what: str) -> T:
    """Return the value. Raises FacetUnavailableError, which says that `what` is missing and why."""
    if isinstance(facet, Known):
        return facet.value
    raise FacetUnavailableError(f"{what}: {facet.reason}")


def load(read: Callable[[], R], note: Callable[[LeewardError], object]) -> Facet[R]:
    """Read a facet. Raises nothing: a failure goes to `note`, and its text is the reason of the missing facet."""
    answer = attempt(read)
    if isinstance(answer, LeewardError):
        note(answer)
        return Unavailable(str(answer), gone=isinstance(answer, ClusterGoneError))
    return Known(answer)
