"""Requests to AWS FIS (the service `fis` of botocore's models), answered in front of the two emulators.

Templates and experiments are those of one account and Region. Not played: target accounts, reports, logs and the safety
lever.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

from local.aws.calls import Call
from local.aws.fis import limits, templates
from local.aws.fis.actions import ACTIONS
from local.aws.fis.errors import Refused, invalid
from local.aws.fis.experiments import OVER, Experiment
from local.aws.fis.faults import Causes

Answer = tuple[int, dict[str, str], bytes]
_COPIED = frozenset({"description", "roleArn", "stopConditions", "actions", "logConfiguration"})
_DEFAULTS = {"accountTargeting": "single-account", "emptyTargetResolutionMode": "fail"}


class FaultInjection:
    """Templates and experiments by id, and the requests that a client token has been used for."""

    def __init__(self, causes: Causes) -> None:
        self._causes = causes
        self._lock = threading.Lock()
        self._templates: dict[str, dict[str, Any]] = {}
        self._experiments: dict[str, Experiment] = {}
        self._tokens: dict[tuple[str, str], tuple[Mapping[str, Any], str]] = {}

    def answer(self, call: Call, path: str, body: bytes) -> Answer | None:
        """Answer a call of AWS FIS; return None for any other, and for one that is not played."""
        if call.service != "fis":
            return None
        headers = {"Content-Type": "application/json"}
        try:
            with self._lock:
                document = self._carry_out(call.action, unquote(path.rpartition("/")[2]), body)
        except Refused as refused:
            headers["x-amzn-ErrorType"] = refused.code
            return refused.status, headers, json.dumps({"message": str(refused)}).encode()
        return None if document is None else (200, headers, json.dumps(document).encode())

    def _carry_out(self, action: str, named: str, body: bytes) -> dict[str, Any] | None:
        carry_out: Mapping[str, Callable[[], dict[str, Any]]] = {
            "CreateExperimentTemplate": lambda: {"experimentTemplate": self._create(_parsed(body))},
            "GetExperimentTemplate": lambda: {"experimentTemplate": self._template(named)},
            "DeleteExperimentTemplate": lambda: {"experimentTemplate": self._delete(named)},
            "ListExperimentTemplates": lambda: {
                "experimentTemplates": [_summary(template) for template in self._templates.values()]
            },
            "StartExperiment": lambda: {"experiment": self._start(_parsed(body)).shown()},
            "GetExperiment": lambda: {"experiment": self._experiment(named).shown()},
            "StopExperiment": lambda: {"experiment": self._stop(named).shown()},
            "ListExperiments": lambda: {"experiments": [one.summary() for one in self._experiments.values()]},
            "GetAction": lambda: {"action": self._action(named)},
        }
        return carry_out[action]() if action in carry_out else None

    def _create(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        templates.check(asked)
        known = self._known_token("CreateExperimentTemplate", asked)
        if known is not None:
            return self._template(known)
        now, name = time.time(), f"EXT{uuid4().hex[:15]}"
        self._templates[name] = {
            **{
                key: value
                for key, value in asked.items()
                if key not in {"clientToken", "experimentReportConfiguration"}
            },
            "id": name,
            "arn": self._arn(f"experiment-template/{name}"),
            "targets": asked.get("targets") or {},
            "tags": asked.get("tags") or {},
            "experimentOptions": {**_DEFAULTS, **(asked.get("experimentOptions") or {})},
            "targetAccountConfigurationsCount": 0,
            "creationTime": now,
            "lastUpdateTime": now,
        }
        self._remember_token("CreateExperimentTemplate", asked, name)
        return self._templates[name]

    def _start(self, asked: Mapping[str, Any]) -> Experiment:
        limits.check("StartExperiment", asked)
        known = self._known_token("StartExperiment", asked)
        if known is not None:
            return self._experiments[known]
        experiment = Experiment(
            template=self._template(asked["experimentTemplateId"]),
            arn_of=self._arn,
            tags=asked.get("tags") or {},
            skip_all=(asked.get("experimentOptions") or {}).get("actionsMode") == "skip-all",
        )
        self._experiments[experiment.id] = experiment
        self._remember_token("StartExperiment", asked, experiment.id)
        experiment.start(self._causes.settings.region, self._causes.fault)
        return experiment

    def _stop(self, name: str) -> Experiment:
        experiment = self._experiment(name)
        if experiment.status in OVER:
            raise invalid(f"Experiment {name} cannot be stopped: its state is {experiment.status}")
        experiment.stop()
        return experiment

    def _delete(self, name: str) -> dict[str, Any]:
        deleted = self._template(name)
        del self._templates[name]
        return deleted

    def _template(self, name: str) -> dict[str, Any]:
        if name not in self._templates:
            raise Refused("ResourceNotFoundException", f"Experiment template {name} does not exist")
        return self._templates[name]

    def _experiment(self, name: str) -> Experiment:
        if name not in self._experiments:
            raise Refused("ResourceNotFoundException", f"Experiment {name} does not exist")
        return self._experiments[name]

    def _action(self, name: str) -> dict[str, Any]:
        if name not in ACTIONS:
            raise Refused("ResourceNotFoundException", f"Action {name} does not exist")
        return ACTIONS[name].shown(self._arn(f"action/{name}"))

    def _known_token(self, action: str, asked: Mapping[str, Any]) -> str | None:
        """Return what an earlier request with the same token made. Raises Refused where its parameters differ."""
        earlier = self._tokens.get((action, asked["clientToken"]))
        if earlier is None:
            return None
        if earlier[0] != asked:
            raise Refused("ConflictException", f"Client token {asked['clientToken']} was used with other parameters")
        return earlier[1]

    def _remember_token(self, action: str, asked: Mapping[str, Any], name: str) -> None:
        self._tokens[action, asked["clientToken"]] = asked, name

    def _arn(self, resource: str) -> str:
        return f"arn:aws:fis:{self._causes.settings.region}:{self._causes.settings.account}:{resource}"


def _parsed(body: bytes) -> Mapping[str, Any]:
    try:
        document = json.loads(body or b"{}")
    except ValueError as error:
        raise invalid("The request is not JSON") from error
    if not isinstance(document, dict):
        raise invalid("The request is not an object")
    return document


def _summary(template: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("id", "arn", "description", "creationTime", "lastUpdateTime", "tags")
    return {name: template[name] for name in kept}
