"""Writer of the changes that `annotations` computes: one patch per node, and none for a node that is gone."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial

from leeward.disruption.annotations import AnnotationChange
from leeward.disruption.planning_state import always
from leeward.errors import LeewardError, ObjectGoneError
from leeward.isolation import isolate_errors, reraise
from leeward.ports.kubernetes import Kubernetes


def write_annotations(
    changes: Iterable[AnnotationChange],
    kubernetes: Kubernetes,
    more: Callable[[], bool] = always,
    note: Callable[[str, LeewardError], object] = reraise,
) -> int:
    """Return the number of nodes that now carry the requested annotations. `more` says whether there is time for
    another node; the remaining changes are requested again next time. Idempotent: writing again changes nothing; a node
    that is gone counts as done.

    `note` receives each node that could not be written and the error, so that the other nodes are still written;
    without it the first error is raised.
    """
    written = 0
    for change in sorted(changes, key=lambda change: (not change.waits, change.node.name)):
        if not more():
            break
        with isolate_errors(partial(note, change.node.name)), suppress(ObjectGoneError):
            kubernetes.annotate(change.node, {**change.set, **dict.fromkeys(change.remove)})
            written += 1
    return written
