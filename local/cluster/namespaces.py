"""Deletion of a namespace: it stays Terminating until everything in it is gone."""

from __future__ import annotations

from .errors import forbidden
from .objects import Obj

_IMMORTAL = ("default", "kube-system", "kube-public")


def check_deletable(resource: str, name: str) -> None:
    """Raise 403 for the namespaces that every cluster needs."""
    if resource == "namespaces" and name in _IMMORTAL:
        message = f'namespaces "{name}" is forbidden: this namespace may not be deleted'
        raise forbidden(message, {"name": name, "kind": "namespaces"})


def is_held(obj: Obj) -> bool:
    """Return whether `spec.finalizers` keeps a namespace: the namespace controller clears it when nothing is left
    inside.
    """
    return obj["kind"] == "Namespace" and bool((obj.get("spec") or {}).get("finalizers"))
