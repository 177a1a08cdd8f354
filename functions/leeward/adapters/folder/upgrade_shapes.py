"""Shapes of the snapshot data that upgrades read: a group's notes on its members, budgets' figures, kubelets."""

import re
from typing import Any

from leeward.adapters.folder.shapes import ShapeError, integer, list_of, record, seconds, text
from leeward.adapters.folder.template_shapes import TEMPLATE, either
from leeward.policy.fields import shown


def share(value: Any, path: str) -> None:
    """Accept a count or a whole percentage, as PodDisruptionBudgets take them."""
    if not isinstance(value, str) or not re.fullmatch(r"\d{1,9}%", value, re.ASCII):
        raise ShapeError(path, shown(value), "a whole number or a percentage such as 25%")


_COUNT = either(integer, share)
CLUSTER = record({"cluster": record({}, {"version": text})})
KUBELET = record({}, {"kubeletVersion": text})
BUDGET_SPEC = record({}, {"maxUnavailable": _COUNT, "minAvailable": _COUNT})
BUDGET_STATUS = record({}, {"expectedPods": integer})
GROUP_RECORD = record(
    {},
    {
        "Instances": list_of(record({}, {"LaunchTemplate": TEMPLATE})),
        "SuspendedProcesses": list_of(record({}, {"ProcessName": text})),
        "MaxInstanceLifetime": seconds,
    },
)
