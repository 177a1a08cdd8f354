"""UpdateNodegroupVersion and DescribeUpdate, which moto lacks: an update rolls the node group in a thread of its own.

EKS launches from a copy of the user's launch template; a requested version is copied into that copy.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

from ministack.core.responses import get_account_id, get_region
from moto.autoscaling.models import autoscaling_backends
from moto.ec2.models import ec2_backends
from moto.eks.models import eks_backends

from local.aws.autoscaling.engine import Engine
from local.aws.eks.access_entries import AccessEntryError as Refused
from local.aws.eks.drains import Access, Nodes
from local.aws.eks.node_groups import source_of
from local.aws.eks.rolling import Rolling, UpdateFailed
from local.aws.moto_backend import model_lock
from local.cluster.instances import SOURCE_TEMPLATE

Answer = tuple[int, dict[str, str], bytes]
EVICTION_SECONDS = 900.0
_START = re.compile(r"^/clusters/(?P<cluster>[^/]+)/node-groups/(?P<group>[^/]+)/update-version/?$")
_LOOK = re.compile(r"^/clusters/(?P<cluster>[^/]+)/updates/(?P<update>[^/]+)/?$")


@dataclass(slots=True, kw_only=True)
class Update:
    """Update as DescribeUpdate shows it."""

    nodegroup: tuple[str, str]  # cluster, name
    asked: Mapping[str, Any]
    id: str = field(default_factory=lambda: str(uuid4()))
    status: str = "InProgress"
    created: float = field(default_factory=time.time)
    errors: list[dict[str, Any]] = field(default_factory=list)

    def shown(self) -> dict[str, Any]:
        """Return the element ``update`` of an answer."""
        params = [{"type": "Version", "value": str(self.asked["version"])}] if self.asked.get("version") else []
        reported = {"id": self.id, "status": self.status, "type": "VersionUpdate", "params": params}
        return {"update": {**reported, "createdAt": self.created, "errors": self.errors}}


class Updates:
    """Updates of all node groups. ``fields_of`` (region, cluster): fields that the control API has set for a
    cluster.
    """

    def __init__(self, engine: Engine, fields_of: Callable[[str, str], Mapping[str, Any]]) -> None:
        self._engine, self._fields_of = engine, fields_of
        self._all: dict[str, Update] = {}
        self._by_token: dict[tuple[str, str, tuple[str, str]], Update] = {}

    def answer(self, method: str, path: str, query: Mapping[str, Any], body: bytes) -> Answer | None:
        """Return the HTTP answer to one of the two calls, None for any other."""
        start, look = _START.match(path), _LOOK.match(path)
        headers = {"Content-Type": "application/json"}
        try:
            if start and method == "POST":
                which = unquote(start["cluster"]), unquote(start["group"])
                return 200, headers, json.dumps(self._start(which, json.loads(body or b"{}")).shown()).encode()
            if look and method == "GET" and query.get("nodegroupName"):
                return 200, headers, json.dumps(self._look(unquote(look["cluster"]), look["update"]).shown()).encode()
        except Refused as refused:
            headers["x-amzn-errortype"] = refused.code
            return refused.status, headers, json.dumps({"message": str(refused)}).encode()
        return None

    def _look(self, cluster: str, update: str) -> Update:
        found = self._all.get(update)
        if found is None or found.nodegroup[0] != cluster:
            raise Refused("ResourceNotFoundException", 404, f"No update found for ID: {update}")
        return found

    def _start(self, which: tuple[str, str], body: Mapping[str, Any]) -> Update:
        with model_lock:
            nodegroup = _nodegroup(which)
            token = get_region(), str(body.get("clientRequestToken") or uuid4()), which
            if token in self._by_token:
                if self._by_token[token].asked != dict(body):
                    raise Refused("InvalidParameterException", 400, "The client request token was used before.")
                return self._by_token[token]
            if any(one.nodegroup == which and one.status == "InProgress" for one in self._all.values()):
                raise Refused("ResourceInUseException", 409, f"Nodegroup {which[1]} is being updated")
            group = _group(nodegroup)
            _repoint(nodegroup, group, body)
            nodegroup.status = "UPDATING"
            update = Update(nodegroup=which, asked=dict(body))
            self._all[update.id] = self._by_token[token] = update
        fields = self._fields_of(get_region(), which[0])
        work = threading.Thread(target=self._roll, args=(update, nodegroup, group, fields), daemon=True)
        work.start()
        return update

    def _roll(self, update: Update, nodegroup: Any, group: Any, fields: Mapping[str, Any]) -> None:
        access = Access.of(fields)
        rolling = Rolling(
            engine=self._engine,
            group=group,
            nodes=Nodes(access) if access is not None else None,
            size=(int(nodegroup.scaling_config["desiredSize"]), int(nodegroup.scaling_config["maxSize"])),
            parallel=int((nodegroup.update_config or {}).get("maxUnavailable") or 1),
            force=bool(update.asked.get("force")),
            patience=float(fields.get("evictionSeconds") or EVICTION_SECONDS),
            lock=model_lock,
        )
        try:
            rolling.play()
        except UpdateFailed as failed:
            error = {"errorCode": failed.code, "errorMessage": str(failed), "resourceIds": failed.about}
            update.errors.append(error)
        except Exception as broken:
            update.errors.append({"errorCode": "Unknown", "errorMessage": repr(broken), "resourceIds": []})
        with model_lock:
            nodegroup.status = "ACTIVE"
            if not update.errors:
                nodegroup.version = update.asked.get("version") or nodegroup.version
                given = update.asked.get("launchTemplate") or {}
                nodegroup.launch_template = {**(nodegroup.launch_template or {}), **given} or None
            update.status = "Failed" if update.errors else "Successful"


def _nodegroup(which: tuple[str, str]) -> Any:
    cluster = eks_backends[get_account_id()][get_region()].clusters.get(which[0])
    found = cluster.nodegroups.get(which[1]) if cluster is not None else None
    if found is None:
        raise Refused("ResourceNotFoundException", 404, f"No node group found for name: {which[1]}.")
    return found


def _group(nodegroup: Any) -> Any:
    name = nodegroup.resources["autoScalingGroups"][0]["name"]
    return autoscaling_backends[get_account_id()][get_region()].autoscaling_groups[name]


def _repoint(nodegroup: Any, group: Any, body: Mapping[str, Any]) -> None:
    """Make another version of EKS's own copy, from the user's version where one is given."""
    given, own = body.get("launchTemplate") or {}, group.ec2_launch_template
    data = dict(own.get_version("$Latest").data)
    if given:
        known = nodegroup.launch_template or {}
        if not known or any(given.get(name) not in {None, known.get(name)} for name in ("id", "name")):
            raise Refused("InvalidParameterException", 400, "The launch template is not the node group's own.")
        source = ec2_backends[get_account_id()][get_region()].get_launch_template(known["id"])
        data.update(source.get_version(str(given.get("version") or "$Default")).data)
        _tag(group, source_of({**given, "id": known["id"]}))
    latest = own.get_version("$Latest")  # a failed update has left a copy
    version = str((latest if given and latest.data == data else own.create_version(data, "")).number)
    group.launch_template_version = version
    group.mixed_instances_policy["LaunchTemplate"]["LaunchTemplateSpecification"]["Version"] = version


def _tag(group: Any, source: str) -> None:
    """Set the tag for instances launched from now on; existing instances keep theirs."""
    tag = {"Key": SOURCE_TEMPLATE, "Value": source, "PropagateAtLaunch": True}
    group.tags = [one for one in group.tags if one["Key"] != SOURCE_TEMPLATE] + [
        {**tag, "ResourceId": group.name, "ResourceType": "auto-scaling-group"}
    ]
