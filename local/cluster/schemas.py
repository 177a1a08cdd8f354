"""Fields of every kind, with their types and descriptions, as Kubernetes publishes them in its OpenAPI document.

They come from the sources of the package lightkube-models, which are read, not imported: importing them needs a client
library that nothing here uses.
"""

from __future__ import annotations

import ast
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import distribution

from local.cluster.resources import Resource

_PACKAGE = "lightkube-models"
# Python 3.11 counts the depth of a syntax tree in one place for all threads: parses side by side fail with SystemError.
_PARSER = threading.Lock()
_PARAMETER = re.compile(r"^\s*\* \*\*(\w+)\*\* ``.*?`` - ?(.*)$")
_WRAPPER = re.compile(r"^(Optional|List)\[(.*)\]$")
_MODULES = {
    "": "core",
    "rbac.authorization.k8s.io": "rbac",
    "admissionregistration.k8s.io": "admissionregistration",
    "coordination.k8s.io": "coordination",
    "discovery.k8s.io": "discovery",
    "resource.k8s.io": "resource",
    "scheduling.k8s.io": "scheduling",
    "storage.k8s.io": "storage",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldType:
    """Type of a field. `name`: str, int, float, bool, dict, IntOrString, Quantity, Time, or `module.Class` of a
    model.
    """

    name: str
    is_list: bool
    required: bool
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """Type of the API. `name` is `module.Class`."""

    name: str
    description: str
    fields: Mapping[str, FieldType]


def model_of(resource: Resource) -> Model | None:
    """Return the type of a resource's objects."""
    module = f"{_MODULES.get(resource.group, resource.group)}_{resource.version}"
    return model_named(f"{module}.{resource.kind}")


def model_named(name: str) -> Model | None:
    """Return the model `module.Class`; None for scalars."""
    module, _, _ = name.partition(".")
    return _models(module).get(name) if "_" in module else None


def package_version() -> str:
    """Return the version of Kubernetes whose types these are, and the package's own."""
    return distribution(_PACKAGE).version


@cache
def _models(module: str) -> dict[str, Model]:
    source = distribution(_PACKAGE).locate_file(f"lightkube/models/{module}.py")
    with _PARSER:
        tree = ast.parse(source.read_text())
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    return {f"{module}.{node.name}": _model(module, node) for node in classes}


def _model(module: str, node: ast.ClassDef) -> Model:
    description, described = _documented(ast.get_docstring(node) or "")
    fields = {}
    for entry in node.body:
        if isinstance(entry, ast.AnnAssign) and isinstance(entry.target, ast.Name):
            name, annotation = entry.target.id.rstrip("_"), ast.literal_eval(entry.annotation)
            fields[name] = _field(module, annotation, described.get(entry.target.id, ""))
    return Model(name=f"{module}.{node.name}", description=description, fields=fields)


def _documented(text: str) -> tuple[str, dict[str, str]]:
    """Return the description of a class, and those of its fields."""
    head, _, rest = text.partition("**parameters**")
    described: dict[str, str] = {}
    name = ""
    for line in rest.splitlines():
        found = _PARAMETER.match(line)
        if found is not None:
            name = found.group(1)
            described[name] = found.group(2).strip()
        elif name:
            described[name] = f"{described[name]} {line.strip()}".rstrip()
    return " ".join(head.split()), described


def _field(module: str, annotation: str, description: str) -> FieldType:
    required, is_list = True, False
    while (found := _WRAPPER.match(annotation)) is not None:
        kind, annotation = found.groups()
        required, is_list = required and kind != "Optional", is_list or kind == "List"
    last = annotation.rpartition(".")[2]
    if last in ("Time", "MicroTime"):
        name = "Time"
    elif last in ("str", "int", "float", "bool", "dict", "IntOrString", "Quantity"):
        name = last
    elif last in ("Any", "Dict", "RawExtension"):
        name = "dict"
    else:
        name = annotation if "." in annotation else f"{module}.{annotation}"
    return FieldType(name=name, is_list=is_list, required=required, description=description)
