"""Objects of every new cluster: the system namespaces and a storage class."""

from __future__ import annotations

from .objects import Obj
from .volumes import gp3_class

_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")


def component_statuses() -> list[tuple[str, Obj]]:
    """Return the answer of a deprecated API for a healthy control plane."""
    said = {"controller-manager": "ok", "etcd-0": "ok", "scheduler": "ok"}
    healthy = {"type": "Healthy", "status": "True"}
    return [
        ("componentstatuses", {"metadata": {"name": name}, "conditions": [{**healthy, "message": text}]})
        for name, text in said.items()
    ]


def first_objects() -> list[tuple[str, Obj]]:
    """Return (resource, object) in the order to create them."""
    namespaces: list[tuple[str, Obj]] = [("namespaces", {"metadata": {"name": name}}) for name in _NAMESPACES]
    return [*namespaces, ("storageclasses", gp3_class())]
