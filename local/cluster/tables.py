"""Server-side printing: the Table that `kubectl get` requests, with the columns of the real printers.

Columns with priority 1 are shown by `-o wide` only.
"""

from __future__ import annotations

from local.cluster.cells import Column
from local.cluster.objects import Obj
from local.cluster.printers import AGE, NAME, PRINTERS


def table(resource: str, objects: list[Obj], *, now: float, metadata: Obj, header: bool = True, rows: str = "") -> Obj:
    """Return the Table. `rows` is the request's includeObject: Metadata (default), Object or None."""
    columns = PRINTERS.get(resource, (NAME, AGE))
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": [_definition(column) for column in columns] if header else [],
        "rows": [_row(obj, columns, now, rows) for obj in objects],
    }


def _definition(column: Column) -> Obj:
    return {
        "name": column.name,
        "type": "string",
        "format": "name" if column.name == "Name" else "",
        "description": column.name,
        "priority": int(column.wide),
    }


def _row(obj: Obj, columns: tuple[Column, ...], now: float, include: str) -> Obj:
    row: Obj = {"cells": [column.value(obj, now) for column in columns]}
    if include == "Object":
        row["object"] = obj
    elif include != "None":
        row["object"] = {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": obj["metadata"],
        }
    return row
