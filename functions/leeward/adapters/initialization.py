"""Preparation of a function before its first event: modules that its steps import late, its ports, its AWS clients.

Lambda runs INIT with a full vCPU whatever the function's memory is. An invocation of 512 MB has less than a third of
one, so the same work takes three times as long there and counts against the time-out."""

import gc
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module

from leeward.errors import LeewardError
from leeward.gc_pause import collector_paused

_AWS = "leeward.adapters.aws"
_CLUSTERS = ("eks", "sts", "ssm")  # find a cluster's API server, enter it, read its policies
_POLICIES = ("leeward.policy.parse", "leeward.adapters.pauses", f"{_AWS}.pauses")  # read together
_RECORDS = ("autoscaling", "dynamodb", "ec2")


@dataclass(frozen=True, slots=True, kw_only=True)
class ColdStartNeed:
    """Modules that nearly every event of a function imports, and services that it calls. A client that few events need
    is made by them: executions of a reconciler or a planner, zonal shifts.
    """

    modules: tuple[str, ...]
    services: tuple[str, ...]


NEEDS: Mapping[str, ColdStartNeed] = {
    "leeward.interruption.handler.handle": ColdStartNeed(
        modules=_POLICIES, services=(*_RECORDS, *_CLUSTERS, "stepfunctions")
    ),
    "leeward.termination.handler.terminate": ColdStartNeed(
        modules=_POLICIES, services=(*_RECORDS, "ssm", "stepfunctions")
    ),
    "leeward.termination.drain_handler.drain": ColdStartNeed(
        modules=(
            *_POLICIES,
            "leeward.termination.replacing",
            f"{_AWS}.catalog",
            f"{_AWS}.load_balancers",
        ),
        services=(*_RECORDS, *_CLUSTERS, "elbv2"),
    ),
    "leeward.reconcile.handler.reconcile": ColdStartNeed(
        modules=(
            *_POLICIES,
            "leeward.reconcile.reconciler",
            "leeward.upgrade.run",
            "leeward.upgrade.reconciler",
            "leeward.disruption.completion",
            "leeward.disruption.replacements",
            f"{_AWS}.catalog",
            f"{_AWS}.maxima",
            f"{_AWS}.recovery",
            f"{_AWS}.workflow_records",
        ),
        services=(*_RECORDS, *_CLUSTERS),
    ),
    "leeward.sync.handler.handle": ColdStartNeed(
        modules=(
            *_POLICIES,
            "leeward.sync.templates",
            f"{_AWS}.catalog",
            f"{_AWS}.launch_templates",
            f"{_AWS}.nodegroups",
        ),
        services=(*_RECORDS, *_CLUSTERS),
    ),
    "leeward.upgrade.handler.upgrade": ColdStartNeed(
        modules=(
            *_POLICIES,
            "leeward.upgrade.managed.steps",
            "leeward.upgrade.steps",
            f"{_AWS}.catalog",
            f"{_AWS}.group_changes",
            f"{_AWS}.launch_templates",
            f"{_AWS}.workflow_records",
        ),
        services=(*_RECORDS, *_CLUSTERS),
    ),
    "leeward.disruption.handler.plan_disruptions": ColdStartNeed(
        modules=(
            *_POLICIES,
            "leeward.disruption.controller",
            f"{_AWS}.catalog",
            f"{_AWS}.workflow_records",
        ),
        services=(*_RECORDS, *_CLUSTERS),
    ),
    "leeward.disruption.handler.disrupt": ColdStartNeed(
        modules=(*_POLICIES, "leeward.disruption.steps", f"{_AWS}.catalog", f"{_AWS}.workflow_records"),
        services=(*_RECORDS, *_CLUSTERS, "stepfunctions"),
    ),
}


def initialize(environment: Mapping[str, str] = os.environ) -> None:
    """Prepare the function that Lambda names in `_HANDLER`; outside of Lambda nothing is done. Calls no AWS API.

    Wrong settings are left to the first event, whose response names them.
    """
    need = NEEDS.get(environment.get("_HANDLER", ""))
    if need is None:
        return
    with collector_paused():  # a quarter of the whole time: modules, and models of AWS APIs, which stay
        _prepare(need)
        gc.freeze()  # nor do the collections of later events walk through them


def _prepare(need: ColdStartNeed) -> None:
    for module in need.modules:
        import_module(module)
    wiring = import_module("leeward.adapters.wiring")
    with suppress(LeewardError):
        wiring.lambda_ports()
        clients = wiring.lambda_clients()
        for service in need.services:
            clients.get(service)
