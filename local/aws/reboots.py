"""Reboots of EC2 instances. moto reboots nothing: here each reboot counts up a tag, by which the kubelet of the local
cluster goes down and comes back with another boot id."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from moto.ec2.models.instances import Instance

from local.aws.pins import expect_parameters, replace
from local.cluster.instances import BOOTS


def install() -> None:
    """Patch moto's ``Instance.reboot``."""
    expect_parameters("moto", Instance.reboot, "self")
    replace(Instance, reboot=_around(Instance.reboot))


def _around(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def reboot(instance: Any) -> None:
        original(instance)
        boots = next((int(tag["value"]) for tag in instance.get_tags() if tag["key"] == BOOTS), 0)
        instance.add_tags({BOOTS: str(boots + 1)})

    return reboot
