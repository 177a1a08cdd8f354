"""Writing what `annotations` asks for: one patch a node, and nothing for a node that is gone."""

from collections.abc import Callable, Iterable

from leeward.disruption.annotations import AnnotationChange
from leeward.disruption.round import always
from leeward.errors import ObjectGoneError
from leeward.ports import Kubernetes


def write_annotations(
    changes: Iterable[AnnotationChange], kubernetes: Kubernetes, more: Callable[[], bool] = always
) -> int:
    """How many nodes carry now what was asked for. `more` says whether there is time for another: what is left over is
    asked for again next time. Writing again changes nothing; a node that is gone counts as done.

    Raises ClusterUnreachableError, ThrottledError, AccessDeniedError.
    """
    written = 0
    for change in sorted(changes, key=lambda change: (not change.waits, change.node.name)):
        if not more():
            break
        try:
            kubernetes.annotate(change.node, {**change.set, **dict.fromkeys(change.remove)})
        except ObjectGoneError:
            continue
        written += 1
    return written
