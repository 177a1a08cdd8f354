"""Request bodies and the options that come with them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import yaml

from local.cluster import protobuf
from local.cluster.deletion import DeleteOptions
from local.cluster.errors import bad_request
from local.cluster.objects import Obj


def parsed_body(raw: bytes, content_type: str) -> Any:
    """Parse JSON, YAML or protobuf by its content type; an empty body is an empty object. Raises 400, 415."""
    if not raw:
        return {}
    if raw.startswith(protobuf.MAGIC):
        return protobuf.decoded(raw)
    try:
        if "yaml" in content_type:
            return yaml.safe_load(raw)
        return json.loads(raw)
    except (ValueError, yaml.YAMLError) as failure:
        raise bad_request(f"the body of the request does not parse: {failure}") from failure


def parsed_object(raw: bytes, content_type: str) -> Obj:
    body = parsed_body(raw, content_type)
    if not isinstance(body, dict):
        raise bad_request("the body of the request must be an object")
    return body


def delete_options(body: Mapping[str, Any], query: Mapping[str, str]) -> DeleteOptions:
    """Return metav1.DeleteOptions from the body, overridden by the query as the real server does."""
    preconditions = body.get("preconditions") or {}
    grace = query.get("gracePeriodSeconds", body.get("gracePeriodSeconds"))
    propagation = query.get("propagationPolicy") or body.get("propagationPolicy") or "Background"
    if body.get("orphanDependents"):
        propagation = "Orphan"
    return DeleteOptions(
        grace=None if grace is None else int(grace),
        uid=preconditions.get("uid"),
        resource_version=preconditions.get("resourceVersion"),
        propagation=propagation,
    )


def is_dry_run(query: Mapping[str, str], body: Mapping[str, Any] | None = None) -> bool:
    """Return whether the request is a dry run. Raises 400 for any value but `All`."""
    values = [*filter(None, [query.get("dryRun")]), *((body or {}).get("dryRun") or [])]
    if any(value != "All" for value in values):
        raise bad_request(f"invalid dryRun: {values}, only All is supported")
    return bool(values)
