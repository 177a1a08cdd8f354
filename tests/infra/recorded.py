"""Calls that the functions make in simulated worlds: requests to the Kubernetes API, and methods of their ports.

The code that runs is the functions' own, under all faults; who calls is the function whose environment it runs in."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from simulation.case import Case

CASES = (
    Case(seed=700, hours=1.0, per_hour=12.0, upgrades=2.0, disruption=True),
    Case(seed=705, hours=1.0, per_hour=12.0, upgrades=2.0, disruption=True),
    Case(seed=5, hours=1.0, per_hour=12.0),  # these three: MaxSize is raised for a node and put back
    Case(seed=7, hours=1.0, per_hour=12.0),
    Case(seed=11, hours=1.0, per_hour=12.0),
    Case(seed=307, hours=1.0, per_hour=12.0, upgrades=4.0),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """By function: requests to Kubernetes, `list nodes`, and calls of ports, `claims.read`."""

    kubernetes: Mapping[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    ports: Mapping[str, set[str]] = field(default_factory=lambda: defaultdict(set))


def record() -> Recorded:
    """Run the worlds."""
    recorded = Recorded()
    for case in CASES:
        world = case.world()
        world.run(case.hours)
        for function, request in world.kubernetes.requests:
            recorded.kubernetes[function].add(request)
        for function, port, method in world.injector.called:
            recorded.ports[function].add(f"{port}.{method}")
    for of_functions in (recorded.kubernetes, recorded.ports):
        of_functions.pop("", None)  # the world's own questions, outside of any function
    return recorded
