"""Every benchmark at its smallest size: whether it runs, not how fast. `python -m bench --smallest` takes some twenty
seconds of CPU; `spot-path`, and the local parts of `storm` and `cost`, need the local stack and are left out."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from bench import (
    calls,
    cost,
    disruption,
    folder,
    hostile,
    imports,
    node_template,
    packing,
    placement,
    pods,
    scheduling,
    simulation,
    snapshot,
    storm,
    upgrade,
)

ON_THE_LOCAL_STACK = frozenset({"spot-path"})


def _with(run: Callable[[], bool], **variables: str) -> bool:
    with _environment(variables):
        return run()


SMALLEST: Mapping[str, Callable[[], bool]] = {
    "imports": partial(imports.run, ["leeward.termination.drain_handler.drain"], runs=1),
    "node-template": partial(node_template.run, look_ups=20),
    "placement": partial(placement.run, [(5, 3)]),
    "scheduling": partial(scheduling.run, [400, 800], {10: 5.0}, 400),
    "packing": partial(packing.run, [1]),
    "snapshot": partial(snapshot.run, 20, 40),
    "pods": partial(pods.run, 20, 40),
    "folder": partial(folder.run, *folder.SMALLEST),
    "disruption": partial(disruption.run, {10: 5.0, 20: 5.0}),
    "hostile": partial(hostile.run, 2, ["spread constraints", "hard spread of all"]),
    "storm": partial(_with, storm.run, HANDLED="1,2", CHAIN="2", LIMITS="2", LOCAL="0"),
    "cost": partial(_with, cost.run, LOCAL="0"),
    "calls": partial(_with, calls.run, CALLS="spot,scale-in"),
    "simulation": partial(simulation.run, 5, 0.1, 600.0),
    "upgrade": partial(_with, upgrade.run, NODES="3", SHARES="1"),
}


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = os.environ.copy()
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
