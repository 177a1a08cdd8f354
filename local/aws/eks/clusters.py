"""Clusters as the EKS API shows them: the local cluster's endpoint and certificate instead of moto's made-up ones."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from ministack import app as ministack_app
from ministack.core.responses import request_scope
from moto.eks import models
from moto.eks.models import EKSBackend, eks_backends

from local.aws import moto_backend
from local.aws.autoscaling.engine import Engine
from local.aws.control import Control, Request
from local.aws.eks import node_groups, provisioner
from local.aws.eks.access_entries import AccessEntries
from local.aws.eks.drains import Access, Nodes
from local.aws.eks.updates import Updates
from local.aws.pins import expect, replace
from local.aws.settings import KUBERNETES_VERSION, Settings

_FIELDS = {"endpoint", "certificateAuthorityData", "version", "token", "evictionSeconds"}


class Clusters:
    """Fields set through the control API, applied to existing and future clusters.

    ``token`` is EKS's own credential for drains, ``evictionSeconds`` the duration of its attempts; DescribeCluster
    shows neither.
    """

    def __init__(self, settings: Settings, engine: Engine) -> None:
        self._settings, self._engine = settings, engine
        self._set: dict[tuple[str, str], dict[str, Any]] = {}

    def install(self, control: Control) -> None:
        """Patch cluster creation, answer access entries in front of moto, register the control routes."""
        expect("moto", hasattr(models, "DEFAULT_KUBERNETES_VERSION"), "eks.models has no DEFAULT_KUBERNETES_VERSION")
        models.DEFAULT_KUBERNETES_VERSION = KUBERNETES_VERSION
        replace(EKSBackend, create_cluster=self._creating(EKSBackend.create_cluster))
        node_groups.install()
        entries = AccessEntries(self._exists)
        provisioner.install(entries)
        updates = Updates(self._engine, lambda region, name: self._set.get((region, name), {}))
        ministack_app.SERVICE_HANDLERS["eks"] = _in_front(entries, updates, ministack_app.SERVICE_HANDLERS["eks"])
        control.add("PUT", "eks/{name}", self._put)
        control.add("GET", "access-entries", lambda request: self._entries(entries, request))

    def nodes(self, name: str) -> Nodes | None:
        """Return the nodes of a cluster of the home Region, as EKS treats them; None where it cannot reach any."""
        access = Access.of(self._set.get((self._settings.region, name), {}))
        return Nodes(access) if access is not None else None

    def _exists(self, region: str, cluster: str) -> bool:
        return cluster in eks_backends[self._settings.account][region].clusters

    def _entries(self, entries: AccessEntries, request: Request) -> list[dict[str, Any]]:
        region = request.query.get("region", self._settings.region)
        with request_scope(self._settings.account, region):
            return entries.of(request.query["cluster"])

    def _put(self, request: Request) -> None:
        unknown = set(request.body) - _FIELDS
        if unknown:
            raise ValueError(f"unknown fields {sorted(unknown)}, expected some of {sorted(_FIELDS)}")
        region, name = request.query.get("region", self._settings.region), request.path["name"]
        self._set.setdefault((region, name), {}).update(request.body)
        with moto_backend.model_lock:
            cluster = eks_backends[self._settings.account][region].clusters.get(name)
            if cluster is not None:
                _apply(cluster, self._set[region, name])

    def _creating(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def create(backend: Any, *args: Any, **kwargs: Any) -> Any:
            cluster = original(backend, *args, **kwargs)
            _apply(cluster, self._set.get((backend.region_name, cluster.name), {}))
            return cluster

        return create


def _apply(cluster: Any, fields: Mapping[str, Any]) -> None:
    if "endpoint" in fields:
        cluster.endpoint = fields["endpoint"]
    if "certificateAuthorityData" in fields:
        cluster.certificate_authority = {"data": fields["certificateAuthorityData"]}
    if "version" in fields:
        cluster.version = fields["version"]


def _in_front(entries: AccessEntries, updates: Updates, inner: moto_backend.Handler) -> moto_backend.Handler:
    async def handle(
        method: str, path: str, headers: Mapping[str, str], body: bytes, query_params: Mapping[str, Any]
    ) -> moto_backend.Answer:
        answer = entries.answer(method, path, body) or updates.answer(method, path, query_params, body)
        return answer if answer is not None else await inner(method, path, headers, body, query_params)

    return handle
