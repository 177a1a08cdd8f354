"""OpenAPI v3: a document for each group version, with the schemas that `kubectl explain` shows.

Every PATCH takes `fieldValidation`: kubectl then leaves validation to the server.
"""

from __future__ import annotations

from functools import cache

from local.cluster.objects import Obj
from local.cluster.resources import GROUPS, Resource, in_group, version_of
from local.cluster.schemas import FieldType, Model, model_named, model_of, package_version

# kubectl up to 1.28 reads OpenAPI v2, as protobuf: no bytes are a valid document without definitions, and a kind that
# it does not define is left to the server to validate
V2_PATH = "/openapi/v2"
V2_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_SCALARS: dict[str, Obj] = {
    "str": {"type": "string"},
    "Time": {"type": "string", "format": "date-time"},
    "int": {"type": "integer", "format": "int32"},
    "float": {"type": "number", "format": "double"},
    "bool": {"type": "boolean"},
    "dict": {"type": "object", "additionalProperties": {"type": "string"}},
    "IntOrString": {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    "Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
}


def index() -> Obj:
    """Return the index of documents; kubectl caches each until its hash changes."""
    paths = ["api/v1", *(f"apis/{group}/{version_of(group)}" for group in GROUPS)]
    number = package_version()
    return {"paths": {path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={number}"} for path in paths}}


@cache
def document(group: str, version: str) -> Obj:
    """Return the document of one group version: its PATCH operations and every type that its kinds are made of."""
    base = f"/apis/{group}/{version}" if group else f"/api/{version}"
    paths: Obj = {}
    schemas: dict[str, Obj] = {}
    for resource in in_group(group, version):
        scope = "/namespaces/{namespace}" if resource.namespaced else ""
        paths[f"{base}{scope}/{resource.plural}/{{name}}"] = {"patch": _patch_operation(resource)}
        model = model_of(resource)
        if model is not None:
            _collect(model, schemas)
            schemas[_schema_name(model.name)]["x-kubernetes-group-version-kind"] = [_kind(resource)]
    info = {"title": "Kubernetes", "version": "unversioned"}
    return {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas}}


def _collect(model: Model, schemas: dict[str, Obj]) -> None:
    name = _schema_name(model.name)
    if name in schemas:
        return
    required = [key for key, field in model.fields.items() if field.required]
    properties = {key: _property(field) for key, field in model.fields.items()}
    schemas[name] = {"type": "object", "description": model.description, "properties": properties}
    if required:
        schemas[name]["required"] = required
    for field in model.fields.values():
        inner = model_named(field.name)
        if inner is not None:
            _collect(inner, schemas)


def _property(field: FieldType) -> Obj:
    if model_named(field.name) is not None:
        kind: Obj = {"allOf": [{"$ref": f"#/components/schemas/{_schema_name(field.name)}"}], "default": {}}
    else:
        kind = _SCALARS.get(field.name, {"type": "object"})
    if field.is_list:
        return {"type": "array", "items": kind, "description": field.description}
    return {**kind, "description": field.description}


def _schema_name(model: str) -> str:
    """Return the published name: `core_v1.Pod` becomes io.k8s.api.core.v1.Pod."""
    module, _, kind = model.partition(".")
    group, _, version = module.partition("_")
    prefix = "io.k8s.apimachinery.pkg.apis" if group == "meta" else "io.k8s.api"
    return f"{prefix}.{group}.{version}.{kind}"


def _kind(resource: Resource) -> Obj:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _patch_operation(resource: Resource) -> Obj:
    names = ("dryRun", "fieldManager", "fieldValidation", "force")
    parameters = [{"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}} for name in names]
    return {
        "parameters": parameters,
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": _kind(resource),
    }
