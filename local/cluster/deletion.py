"""Options of a deletion, the preconditions that it names, and the grace period that results."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import precondition_failed
from .objects import Obj, is_finished, name_of, node_of
from .resources import resource_named
from .timestamps import rfc3339

SECOND = 10**9  # in nanoseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    """metav1.DeleteOptions, as far as it is supported. `grace` in seconds, None for the pod's own."""

    grace: int | None = None
    uid: str | None = None
    resource_version: str | None = None
    propagation: str = "Background"


def check_preconditions(resource: str, obj: Obj, options: DeleteOptions) -> None:
    """Raise 409 when the object is not the one, or not the version, that the caller meant."""
    kind, metadata = resource_named(resource), obj["metadata"]
    if options.uid and options.uid != metadata["uid"]:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({metadata['uid']})."
            " The object might have been deleted and then recreated"
        )
        raise precondition_failed(kind, name_of(obj), why)
    wanted = options.resource_version
    if wanted and wanted != metadata["resourceVersion"]:
        why = (
            f"the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record"
            f" ({metadata['resourceVersion']}). The object might have been modified"
        )
        raise precondition_failed(kind, name_of(obj), why)


def grace_period(resource: str, obj: Obj, options: DeleteOptions) -> int:
    """Return the seconds before the object is removed: none unless a kubelet has to end it."""
    if resource != "pods":
        return 0
    if node_of(obj) is None or is_finished(obj):
        return 0
    grace = options.grace
    if grace is None:
        grace = int(obj["spec"].get("terminationGracePeriodSeconds", 30))
    return 1 if grace < 0 else grace


def as_duration(grace: int) -> float:
    """Return the seconds as Go's time.Duration holds them: 64 bits of nanoseconds, in which the greatest grace periods
    turn into moments of the past.
    """
    nanoseconds = (grace * SECOND + 2**63) % 2**64 - 2**63
    return nanoseconds / SECOND


def as_deleted(resource: str, obj: Obj, options: DeleteOptions, now: float) -> Obj:
    """Return a pod as the answer to its deletion shows it, where the stored pod does not."""
    if resource != "pods":
        return obj
    grace = grace_period(resource, obj, options)
    stamp = rfc3339(now + as_duration(grace))
    return {**obj, "metadata": {**obj["metadata"], "deletionTimestamp": stamp, "deletionGracePeriodSeconds": grace}}
