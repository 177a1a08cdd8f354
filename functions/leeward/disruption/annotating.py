"""Writing what `annotations` asks for: one patch a node, and nothing for a node that is gone."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial

from leeward.disruption.annotations import AnnotationChange
from leeward.disruption.round import always
from leeward.errors import LeewardError, ObjectGoneError
from leeward.isolation import isolate_errors, reraise
from leeward.ports import Kubernetes


def write_annotations(
    changes: Iterable[AnnotationChange],
    kubernetes: Kubernetes,
    more: Callable[[], bool] = always,
    note: Callable[[str, LeewardError], object] = reraise,
) -> int:
    """How many nodes carry now what was asked for. `more` says whether there is time for another: what is left over is
    asked for again next time. Writing again changes nothing; a node that is gone counts as done.

    `note` takes a node that could not be written and why, so that the others are; without it the first one raises.
    """
    written = 0
    for change in sorted(changes, key=lambda change: (not change.waits, change.node.name)):
        if not more():
            break
        with isolate_errors(partial(note, change.node.name)), suppress(ObjectGoneError):
            kubernetes.annotate(change.node, {**change.set, **dict.fromkeys(change.remove)})
            written += 1
    return written
