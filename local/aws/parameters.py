"""SSM's public parameters: ``/aws/service/…`` can be written here, because no service publishes AMI ids locally."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ministack.services import ssm

from local.aws.pins import expect_parameters

_PUBLIC = "/aws/service/"


def install() -> None:
    """Let PutParameter write public parameters; every other reserved name stays refused."""
    expect_parameters("ministack", ssm._reserved_name_error, "name")
    ssm._reserved_name_error = _allowing(ssm._reserved_name_error)


def _allowing(original: Callable[[str], Any]) -> Callable[[str], Any]:
    @functools.wraps(original)
    def refuse(name: str) -> Any:
        return None if name.startswith(_PUBLIC) else original(name)

    return refuse
