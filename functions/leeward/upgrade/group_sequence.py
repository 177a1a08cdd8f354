"""Upgrades of several groups, one after the other: `{"groups": ["FIRST", "SECOND"]}`, of one cluster or of several.

Decides what follows. The record of the current group carries the names of the others; the step that ends its upgrade
well starts the next. A failure keeps them: when the group is started again and succeeds, they follow."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from leeward.errors import InvalidInputError
from leeward.ports.autoscaling import Groups
from leeward.ports.executions import NamedExecutions
from leeward.upgrade.observation import described
from leeward.upgrade.record import Asked, UpgradeRecord
from leeward.workflow.executions import execution_name

MOST_GROUPS = 50


def following(given: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the groups after the first, from the input of an execution. Raises InvalidInputError for anything but a
    list of different names, and for a control request for several.
    """
    groups = given.get("groups")
    listed = groups if groups is not None else [given.get("group"), *(given.get("then") or ())]
    if not isinstance(listed, list) or not all(isinstance(one, str) and one for one in listed):
        raise InvalidInputError(f'input: found groups {groups!r}, expected a list of names such as ["web", "batch"]')
    if len(set(listed)) < len(listed) or len(listed) > MOST_GROUPS:
        raise InvalidInputError(f"input: found groups {listed!r}, expected at most {MOST_GROUPS}, each of them once")
    if groups is not None and ("action" in given or "group" in given):
        raise InvalidInputError("input: found groups beside group or action, expected it alone")
    return tuple(listed[1:])


def known(names: tuple[str, ...], groups: Groups) -> tuple[str, ...]:
    """Return the same names. Raises InvalidInputError for one that Auto Scaling does not know, before the first is
    changed.
    """
    for name in names:
        described(name, groups)
    return names


def begin_next(record: UpgradeRecord, upgrade_executions: NamedExecutions) -> str:
    """Start the upgrade of the group that follows; return what was done, in a sentence, empty where none follows. The
    name follows from the record: a repeat, also when that execution has ended, starts nothing more.
    """
    if not record.then:
        return ""
    group, *rest = record.then
    stamp = sha256(f"{record.group}/{record.stamp}".encode()).hexdigest()[:8]
    name = execution_name(f"{group}-{stamp}", 0)
    upgrade_executions.start(name, {"group": group, "then": rest, **_input(record.asked)})
    return f"then {group} (execution {name})"


def _input(asked: Asked) -> dict[str, Any]:
    """Return the input that `asked_for` reads; the target is the same for each group of a list."""
    words = {
        "ami": asked.image,
        "launchTemplateVersion": asked.template_version,
        "kubernetesVersion": asked.kubernetes,
        "force": asked.force,
        "override": list(asked.overrides),
    }
    return {key: value for key, value in words.items() if value}
