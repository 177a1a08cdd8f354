"""A small fleet made manually, so that these tests know what is in it."""

from dataclasses import dataclass, field
from datetime import timedelta

from leeward.policy.document import (
    ClusterPolicies,
    ClusterSettings,
    DrainPolicy,
    GroupSelector,
    NodePolicy,
)
from simulation import functions
from simulation.faults import Killed
from simulation.plans import AutoscalerPlan

ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")


@dataclass(frozen=True, kw_only=True)
class GroupPlan:
    name: str = "spot"
    zones: tuple[str, ...] = ZONES
    spot: bool = True
    size: int = 3
    maximum: int = 10
    capacity_rebalance: bool = False
    instance_type: str = "m5.large"
    foreign_hook: bool = False
    selected: bool = True
    refuses: str = ""


@dataclass(frozen=True, kw_only=True)
class Fleet:
    cluster: str = "blue"
    zones: tuple[str, ...] = ZONES
    groups: tuple[GroupPlan, ...] = (GroupPlan(),)
    workloads: tuple = ()
    policies: ClusterPolicies = field(default_factory=lambda: policies(settle=10))
    autoscaler: AutoscalerPlan | None = None


@dataclass(frozen=True, kw_only=True)
class Arrival:
    at_seconds: float
    kind: str
    pick: int = 0


def policies(settle: int = 10, timeout: int = 900) -> ClusterPolicies:
    drain = DrainPolicy(settle=timedelta(seconds=settle), timeout=timedelta(seconds=timeout))
    policy = NodePolicy(name="all", selector=GroupSelector(), drain=drain)
    return ClusterPolicies(settings=ClusterSettings(name="blue"), policies=(policy,))


def deployment(name: str = "web", replicas: int = 4) -> dict:
    labels = {"app": name}
    container = {"name": "app", "image": "app", "resources": {"requests": {"cpu": "250m", "memory": "64Mi"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"terminationGracePeriodSeconds": 10, "containers": [container]},
            },
        },
    }


def budget(name: str = "web", unavailable: int = 1) -> dict:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": name}}, "maxUnavailable": unavailable},
    }


SMALL = Fleet(workloads=(deployment(), budget()))


def killed_after(function, step, monkeypatch):
    """Kill the function twice when the effects of the step are done; return the list in which each death is noted."""
    real, killed = functions.step, []

    def dies(name, call, ports):
        answer = real(name, call, ports)
        if name == function and call["step"] == step and len(killed) < 2:
            killed.append(step)
            raise Killed(step)
        return answer

    monkeypatch.setattr(functions, "step", dies)
    return killed
