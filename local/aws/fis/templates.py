"""Experiment templates: the rules that AWS FIS checks when one is created, beyond the limits of its service model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any

from local.aws.fis import limits
from local.aws.fis.actions import ACTIONS, RESOURCE_TYPES, Action, Parameter
from local.aws.fis.errors import invalid

ALARM = "aws:cloudwatch:alarm"
_SELECTION = re.compile(r"ALL|COUNT\([1-9]\d*\)|PERCENT\(([1-9]\d?|100)\)")
_IDENTIFIED = ("resourceArns", "resourceTags", "filters", "parameters")


def check(body: Mapping[str, Any]) -> None:
    """Check the request of CreateExperimentTemplate. Raises Refused."""
    limits.check("CreateExperimentTemplate", body)
    _check_stop_conditions(body["stopConditions"])
    targets = body.get("targets") or {}
    for name, target in targets.items():
        _check_target(name, target)
    if not body["actions"]:
        raise invalid("The experiment template has no action")
    for name, action in body["actions"].items():
        _check_action(name, action, targets)
    _check_order(body["actions"])


def _check_stop_conditions(conditions: list[Mapping[str, Any]]) -> None:
    """Require one stop condition at least: `none` alone, or alarms with their ARNs."""
    if not conditions:
        raise invalid("The experiment template has no stop condition; the source none says so")
    for condition in conditions:
        source, value = condition["source"], condition.get("value")
        if source not in {"none", ALARM}:
            raise invalid(f"Stop condition source {source} is not supported, expected none or {ALARM}")
        if source == "none" and (value or len(conditions) > 1):
            raise invalid("The stop condition none has no value and is the only one")
        if source == ALARM and ":alarm:" not in (value or ""):
            raise invalid(f"Stop condition {ALARM} needs the ARN of an alarm, found {value}")


def _check_target(name: str, target: Mapping[str, Any]) -> None:
    if target["resourceType"] not in RESOURCE_TYPES:
        raise invalid(f"Target {name}: resource type {target['resourceType']} is not supported")
    if not any(target.get(key) for key in _IDENTIFIED):
        raise invalid(f"Target {name} identifies no resource")
    if target.get("resourceArns") and (target.get("resourceTags") or target.get("filters")):
        raise invalid(f"Target {name}: ARNs exclude tags and filters")
    if target.get("parameters"):
        raise invalid(f"Target {name}: resource type {target['resourceType']} has no parameters")
    if _SELECTION.fullmatch(target["selectionMode"]) is None:
        raise invalid(f"Target {name}: selection mode {target['selectionMode']} is not ALL, COUNT(n) or PERCENT(n)")


def _check_action(name: str, action: Mapping[str, Any], targets: Mapping[str, Mapping[str, Any]]) -> None:
    known = ACTIONS.get(action["actionId"])
    if known is None:
        raise invalid(f"Action {name}: {action['actionId']} is not supported")
    given = action.get("targets") or {}
    if set(given) != set(known.targets):
        raise invalid(f"Action {name}: found the targets {sorted(given)}, expected {sorted(known.targets)}")
    for key, target in given.items():
        if target not in targets:
            raise invalid(f"Action {name}: target {target} is not defined")
        found, expected = targets[target]["resourceType"], known.targets[key]
        if found != expected:
            raise invalid(f"Action {name}: target {target} has the resource type {found}, expected {expected}")
    _check_parameters(name, known, action.get("parameters") or {})


def _check_parameters(name: str, known: Action, given: Mapping[str, str]) -> None:
    for key, parameter in known.parameters.items():
        if parameter.required and key not in given:
            raise invalid(f"Action {name}: parameter {key} is missing")
    for key, value in given.items():
        if key not in known.parameters:
            raise invalid(f"Action {name}: {known.id} has no parameter {key}")
        if not _accepted(known.parameters[key], value):
            raise invalid(f"Action {name}: parameter {key} has the invalid value {value}")


def _accepted(parameter: Parameter, value: str) -> bool:
    try:
        return parameter.accepts(value)
    except ValueError:
        return False


def _check_order(actions: Mapping[str, Mapping[str, Any]]) -> None:
    after = {name: action.get("startAfter") or [] for name, action in actions.items()}
    for name, others in after.items():
        unknown = sorted(set(others) - set(actions))
        if unknown:
            raise invalid(f"Action {name}: startAfter names {', '.join(unknown)}, which is not defined")
    try:
        TopologicalSorter(after).prepare()
    except CycleError as error:
        raise invalid("The actions start after one another in a circle") from error
