"""JSON bodies. The encoded form of an object is cached until the object changes, which makes large lists cheap."""

from __future__ import annotations

import gzip
import json
from typing import Any

from local.cluster.objects import Obj
from local.cluster.resources import Resource

_KEPT = 20_000
_COMPRESS_FROM = 128 * 1024  # bytes, the real server's threshold


def encoded(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


class ListEncoder:
    """Encoder of lists of stored objects. Items carry no kind and apiVersion, exactly as the real server sends typed
    lists.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], bytes] = {}

    def body(self, resource: Resource, objects: list[Obj], metadata: Obj) -> bytes:
        head = encoded({"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": metadata})
        items = b",".join(self._item(obj) for obj in objects)
        return head[:-1] + b',"items":[' + items + b"]}"

    def _item(self, obj: Obj) -> bytes:
        metadata = obj["metadata"]
        key = (metadata["uid"], metadata["resourceVersion"])
        found = self._known.get(key)
        if found is None:
            found = encoded({name: value for name, value in obj.items() if name not in ("kind", "apiVersion")})
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[key] = found
        return found


def compressed(body: bytes, accept_encoding: str) -> tuple[bytes, dict[str, str]]:
    """Return the body as sent and its headers: gzip when requested and worthwhile."""
    if len(body) < _COMPRESS_FROM or "gzip" not in accept_encoding:
        return body, {}
    return gzip.compress(body, compresslevel=1, mtime=0), {"content-encoding": "gzip", "vary": "Accept-Encoding"}
