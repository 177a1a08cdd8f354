"""Resource quantities as integers of thousandths (`250m` cpu = 250, `1Ki` memory = 1,024,000): sums stay exact."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal
from functools import lru_cache
from typing import Any

from .objects import Obj

_SUFFIXES = {
    "Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30), "Ti": Decimal(2**40), "Pi": Decimal(2**50),
    "m": Decimal("0.001"), "k": Decimal(10**3), "M": Decimal(10**6), "G": Decimal(10**9), "T": Decimal(10**12),
}  # fmt: skip
_OF_PODS = ("cpu", "memory")  # with huge pages


@lru_cache(maxsize=4096)
def thousandths(text: str) -> int:
    """Return thousandths: `"250m"` → 250, `"2"` → 2000, `"1Ki"` → 1024000; fractions round up, as the scheduler's
    do.
    """
    for suffix, factor in _SUFFIXES.items():
        if text.endswith(suffix):
            return int((Decimal(text[: -len(suffix)]) * factor * 1000).to_integral_value(ROUND_CEILING))
    return int((Decimal(text) * 1000).to_integral_value(ROUND_CEILING))


def resource_list(values: dict[str, Any] | None) -> dict[str, int]:
    return {name: thousandths(str(value)) for name, value in (values or {}).items()}


def pod_requests(pod: Obj) -> dict[str, int]:
    """Return the amounts that the scheduler reserves: containers and sidecars together, at least the largest init
    container with the sidecars started before it, one pod. Requests of the pod itself replace the sum. A container that
    is resized in place counts with the largest of what it asks for (unless that is infeasible), what is allocated to
    it, and what it has.

    Rule: kubernetes/component-helpers `resource.PodRequests` with UseStatusResources.
    """
    spec, held = pod["spec"], held_resources(pod)
    infeasible = bool(held) and _is_infeasible(pod)

    def requests(container: Obj) -> dict[str, int]:
        others = held.get(container["name"]) if held else None
        if others is None:
            return _asked(container)
        return _largest(others if infeasible else [_asked(container), *others])

    total: dict[str, int] = {"pods": 1000}
    largest: dict[str, int] = {}
    sidecars: dict[str, int] = {}
    for container in spec.get("containers") or []:
        _add(total, requests(container))
    for container in spec.get("initContainers") or []:
        wanted = requests(container)
        if container.get("restartPolicy") == "Always":
            _add(total, wanted)
            _add(sidecars, wanted)
        else:
            _add(wanted, sidecars)
            largest = _largest([largest, wanted])
    for key, amount in largest.items():
        total[key] = max(total.get(key, 0), amount)
    of_pod = resource_list((spec.get("resources") or {}).get("requests"))
    total.update({name: amount for name, amount in of_pod.items() if name in _OF_PODS or name.startswith("hugepages-")})
    _add(total, resource_list(spec.get("overhead")))
    return total


def held_resources(pod: Obj) -> dict[str, list[dict[str, int]]]:
    """Return what each container has and what is allocated to it; mostly nothing, where no kubelet reports it."""
    status = pod.get("status") or {}
    return {
        entry["name"]: [
            resource_list(entry["resources"].get("requests")),
            resource_list(entry.get("allocatedResources")),
        ]
        for part in ("containerStatuses", "initContainerStatuses")
        for entry in status.get(part) or []
        if entry.get("resources")
    }


def _is_infeasible(pod: Obj) -> bool:
    return any(
        (entry["type"], entry.get("reason")) == ("PodResizePending", "Infeasible")
        for entry in pod["status"].get("conditions") or []
    )


def _asked(container: Obj) -> dict[str, int]:
    resources = container.get("resources") or {}
    return resource_list({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


def _largest(parts: list[dict[str, int]]) -> dict[str, int]:
    names = {name for part in parts for name in part}
    return {name: max(part.get(name, 0) for part in parts) for name in sorted(names)}


def _add(total: dict[str, int], more: dict[str, int]) -> None:
    for key, amount in more.items():
        total[key] = total.get(key, 0) + amount
