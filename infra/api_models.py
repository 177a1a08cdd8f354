"""Models of AWS' APIs in the asset: botocore's own, cut to the operations that the functions call.

botocore parses a service's whole model to make its client: that of EC2 has 700 operations, of which the functions call
ten. The cut models take a tenth of the time and of the memory, and hold operations that the runtime's SDK may be too
old for (LaunchInstances came with botocore 1.40.76). Whatever is not here comes from the runtime's own SDK: waiters,
endpoint rules, other services.

The operations are those whose names stand in the adapters' source, as attributes or as text. A name too many costs a
few lines of a model. Files are plain JSON: the asset is compressed as a whole, and the same on every builder.
"""

import ast
import gzip
import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import botocore
from botocore import xform_name

Json = dict[str, Any]
ADAPTERS = Path("functions/leeward/adapters")
SERVICE, PAGINATORS, ENDPOINTS = "service-2.json", "paginators-1.json", "endpoints.json"
_TEXT = "documentation"
PROTOCOLS = frozenset({"ec2", "json", "query", "rest-json", "rest-xml"})  # those of the oldest SDK of the runtime


def botocore_data() -> Path:
    """Return the folder of the pinned botocore's models."""
    return Path(botocore.__file__).parent / "data"


def names_in(source: Path, left_out: Collection[str] = ()) -> frozenset[str]:
    """Return the attributes and the texts in all modules below the folder, among them all operations and services;
    `left_out`: folders in it that are not in the asset.
    """
    return frozenset(
        name
        for path in source.rglob("*.py")
        if not set(left_out).intersection(path.relative_to(source).parts)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (name := _name(node))
    )


def _name(node: ast.AST) -> str:
    match node:
        case ast.Attribute(attr=name) | ast.Constant(value=str() as name):
            return name
        case _:
            return ""


def cut_models(names: frozenset[str]) -> Mapping[Path, bytes]:
    """Return the files by their paths below the folder of models: model and paginators of each service that has an
    operation among the names, and the endpoints of these services. A service whose model speaks a protocol that the
    runtime's SDK may not know keeps that SDK's own model.
    """
    files: dict[Path, bytes] = {}
    prefixes = set[str]()
    for service in sorted(path for path in botocore_data().iterdir() if path.name in names and path.is_dir()):
        folder = max(path for path in service.iterdir() if (path / f"{SERVICE}.gz").exists())
        model = cut_model(_read(folder / f"{SERVICE}.gz"), names)
        if model["operations"]:
            prefixes |= {service.name, model["metadata"]["endpointPrefix"]}
        if not model["operations"] or model["metadata"]["protocol"] not in PROTOCOLS:
            continue
        place = folder.relative_to(botocore_data())
        files[place / SERVICE] = _written(model)
        if (folder / PAGINATORS).exists():
            pagination = _read(folder / PAGINATORS)["pagination"]
            used = {name: rule for name, rule in pagination.items() if name in model["operations"]}
            files[place / PAGINATORS] = _written({"pagination": used})
    files[Path(ENDPOINTS)] = _written(_cut_endpoints(_read(botocore_data() / ENDPOINTS), prefixes))
    return files


def cut_model(model: Json, names: frozenset[str]) -> Json:
    """Return the model with the operations whose Python names are among these, all shapes that they reach, and no
    documentation.
    """
    operations = {name: raw for name, raw in model["operations"].items() if xform_name(name) in names}
    shapes: Json = {}
    left = list(_shapes_in(operations))
    while left:
        name = left.pop()
        if name not in shapes:
            shapes[name] = model["shapes"][name]
            left += _shapes_in(shapes[name])
    kept: Json = _without_text({**model, "operations": operations, "shapes": shapes})
    return kept


def _shapes_in(part: Any) -> Iterator[str]:
    """Return the names of the shapes to which a part of a model refers: requests, answers, errors, members."""
    if isinstance(part, dict):
        if isinstance(part.get("shape"), str):
            yield part["shape"]
        for inner in part.values():
            yield from _shapes_in(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from _shapes_in(inner)


def _without_text(part: Any) -> Any:
    """Return the part without texts; a member of a shape may be called so, and is a mapping."""
    if isinstance(part, dict):
        kept = part.items()
        return {key: _without_text(one) for key, one in kept if key != _TEXT or not isinstance(one, str)}
    return [_without_text(inner) for inner in part] if isinstance(part, list) else part


def _cut_endpoints(endpoints: Json, prefixes: set[str]) -> Json:
    return {
        **endpoints,
        "partitions": [
            {**one, "services": {name: raw for name, raw in one["services"].items() if name in prefixes}}
            for one in endpoints["partitions"]
        ],
    }


def _read(path: Path) -> Json:
    raw = path.read_bytes()
    found: Json = json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)
    return found


def _written(content: Json) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()
