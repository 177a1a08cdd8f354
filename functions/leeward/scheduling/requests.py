"""Resource requests of a pod, added up as kube-scheduler's NodeResourcesFit does, and the host ports that it takes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from leeward.model.quantity import CPU, MEMORY, PODS, amounts, total

ANY_ADDRESS = "0.0.0.0"
_OF_PODS = (CPU, MEMORY)  # resources that `spec.resources` may set, with huge pages


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class HostPort:
    """Port of the node. Two clash when port and protocol agree and one address is the other's or every address."""

    port: int
    protocol: str = "TCP"
    address: str = ANY_ADDRESS


def pod_requests(spec: Mapping[str, Any]) -> dict[str, int]:
    """Return the requests by resource, with one of `pods`. Source: component-helpers' resource.PodRequests (KEP 753,
    2837, 688).

    Containers and sidecars (init containers with restartPolicy Always) are summed; an ordinary init container runs
    beside the sidecars started before it, and the largest such moment counts; requests of the pod itself replace the
    sum; the overhead is added. Raises InvalidInputError for a malformed quantity.
    """
    running, sidecars = total(map(_requests, spec.get("containers") or ())), dict[str, int]()
    peak: dict[str, int] = {}
    for container in spec.get("initContainers") or ():
        wanted = total((_requests(container), sidecars))
        if container.get("restartPolicy") == "Always":
            running, sidecars = total((running, _requests(container))), wanted
        _raise_to(peak, wanted)
    _raise_to(running, peak)
    of_pod = amounts((spec.get("resources") or {}).get("requests"))
    running.update({name: value for name, value in of_pod.items() if _of_pod(name)})
    return {name: value for name, value in total((running, amounts(spec.get("overhead")))).items() if value} | {PODS: 1}


def as_held(spec: Mapping[str, Any], status: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the spec with the requests that a running pod holds while it is resized in place: the largest of what it
    asks for, what the kubelet has allocated and what the container has; without the first where the resize is
    infeasible. Source: component-helpers' PodRequests with UseStatusResources (KEP 1287). Most specs are returned as
    they are.
    """
    parts = [(part, f"{part.removesuffix('s')}Statuses") for part in ("containers", "initContainers")]
    known = {one.get("name"): one for _, name in parts for one in status.get(name) or () if one.get("resources")}
    if not known or all(_is_settled(one, known) for part, _ in parts for one in spec.get(part) or ()):
        return spec
    infeasible = any(
        one.get("type") == "PodResizePending" and one.get("reason") == "Infeasible"
        for one in status.get("conditions") or ()
    )
    for part, _ in parts:
        held = [_held(one, known.get(one.get("name")), infeasible=infeasible) for one in spec.get(part) or ()]
        spec = {**spec, part: held}
    return spec


def _is_settled(container: Mapping[str, Any], known: Mapping[Any, Any]) -> bool:
    asked, one = (container.get("resources") or {}).get("requests"), known.get(container.get("name"))
    return one is None or all(
        not has or has == asked for has in (one["resources"].get("requests"), one.get("allocatedResources"))
    )


def _held(container: Mapping[str, Any], status: Mapping[str, Any] | None, *, infeasible: bool) -> Mapping[str, Any]:
    if status is None:
        return container
    resources, most = container.get("resources") or {}, dict[str, Any]()
    asked = None if infeasible else resources.get("requests")
    for part in (asked, status["resources"].get("requests"), status.get("allocatedResources")):
        for name, text in (part or {}).items():
            if name not in most or amounts({name: text})[name] > amounts({name: most[name]})[name]:
                most[name] = text
    return {**container, "resources": {**resources, "requests": most}}


def _requests(container: Mapping[str, Any]) -> dict[str, int]:
    """Return the requests of a container. A limit without a request is the request: the API server writes it so into
    pods, not into templates.
    """
    resources = container.get("resources") or {}
    return {**amounts(resources.get("limits")), **amounts(resources.get("requests"))}


def _raise_to(target: dict[str, int], least: Mapping[str, int]) -> None:
    for name, value in least.items():
        target[name] = max(target.get(name, 0), value)


def _of_pod(name: str) -> bool:
    return name in _OF_PODS or name.startswith("hugepages-")


def host_ports(spec: Mapping[str, Any]) -> tuple[HostPort, ...]:
    """Return the ports of NodePorts: `hostPort` of containers and sidecars; with hostNetwork, every container port."""
    sidecars = [one for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always"]
    found = {port for one in (*(spec.get("containers") or ()), *sidecars) for port in _ports(one, spec)}
    return tuple(sorted(found))


def _ports(container: Mapping[str, Any], spec: Mapping[str, Any]) -> Iterable[HostPort]:
    for raw in container.get("ports") or ():
        port = raw.get("hostPort") or (raw["containerPort"] if spec.get("hostNetwork") else 0)
        if port:
            protocol, address = raw.get("protocol") or "TCP", raw.get("hostIP") or ANY_ADDRESS
            yield HostPort(port=int(port), protocol=protocol, address=address)
