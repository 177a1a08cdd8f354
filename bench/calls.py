"""Calls to AWS and to Kubernetes for each terminated node, by operation, in virtual time (`bench/calls_count.py` says
how they are counted).

Targets, for a drain of 60 s after a spot warning and after a scale-in: at most 6 Describe calls to EC2 and Auto
Scaling, at most 10 lists of the API server, of fn interruption, fn terminate and fn drain together. At most 18 calls
of the table about records in each scene, fn upgrade and fn disrupt included. The schedules (minute reconciler, sync,
decide) run whatever happens; they are printed separately. A node of an upgrade of 100 nodes and of a disruption run
costs at most 8 Describe calls, schedules included. An idle hour makes at most 300.
`CALLS=spot,scale-in` runs only these two scenes; `NODES=20` makes the upgrade smaller, without a target.
"""

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable

from bench.calls_count import OTHERS_DESCRIBES, TERMINATION
from bench.calls_worlds import Scene, disruption, idle_hour, scale_in, spot_warning, upgrade

MOST_DESCRIBES = 6
MOST_LISTS = 10
MOST_IN_RUNS = 8  # Describe calls for each node of an upgrade and of a disruption run, all functions together
UPGRADED = 100  # nodes of the upgrade that has a target: a turn costs the same for fewer nodes
MOST_TABLE_CALLS = 18  # about termination records, of a node in each scene
MOST_IDLE = 300  # Describe calls of an idle hour of 100 nodes, all functions together
RUNS = TERMINATION | {"upgrade", "disrupt"}  # functions that run because of an event


def run() -> bool:
    """Print every scene; return whether every target is met."""
    nodes = int(os.environ.get("NODES", str(UPGRADED)))
    scenes: dict[str, tuple[Callable[[], Scene], bool]] = {
        "spot": (spot_warning, True),
        "scale-in": (scale_in, True),
        "upgrade": (lambda: upgrade(nodes), nodes >= UPGRADED),
        "disruption": (disruption, True),
        "idle": (idle_hour, True),
    }
    wanted = os.environ.get("CALLS", "").split(",") if os.environ.get("CALLS") else list(scenes)
    print("calls at the adapters' ports in the simulation, hooks kept for a minute by each sandbox:")
    met = [_shown(make(), judged=judged) for make, judged in (scenes[name] for name in wanted)]
    return all(met)


def missed(scene: Scene) -> list[str]:
    """Return the missed targets of a single node, of a run of several or of an idle hour, each in words."""
    if scene.nodes is None:
        idle = scene.counts.describes(scene.counts.functions)
        return [f"at most {MOST_IDLE} Describe calls"] if idle > MOST_IDLE else []
    table = scene.counts.table_calls(RUNS) / scene.nodes
    found = [f"at most {MOST_TABLE_CALLS} calls of the table"] if table > MOST_TABLE_CALLS else []
    if scene.nodes > 1:
        run = scene.counts.describes(scene.counts.functions) / scene.nodes
        return found + (
            [f"at most {MOST_IN_RUNS} Describe calls a node, schedules included"] if run > MOST_IN_RUNS else []
        )
    found += [f"at most {MOST_DESCRIBES} Describe calls"] if scene.counts.describes() > MOST_DESCRIBES else []
    return found + ([f"at most {MOST_LISTS} lists"] if scene.counts.lists() > MOST_LISTS else [])


def _shown(scene: Scene, *, judged: bool) -> bool:
    nodes, counts = scene.nodes or 1, scene.counts
    found = missed(scene) if judged else []
    unit = "in all" if scene.nodes is None else "a node"
    wanted = RUNS if scene.nodes is not None else frozenset(counts.functions)
    describes, lists = counts.describes(wanted) / nodes, counts.lists(wanted) / nodes
    target = f" ({_targets(scene)})" if judged else ""
    print(f"{scene.name}, {scene.seconds:.0f} s: {describes:.1f} Describe calls and {lists:.1f} lists {unit}{target}")
    if scene.nodes is not None:
        table = counts.table_calls(wanted) / nodes
        print(f"  {table:.1f} calls of the table about records {unit} (target {MOST_TABLE_CALLS})")
    _lines(scene, wanted, nodes)
    rest = frozenset(counts.functions) - wanted
    if rest:
        describes, lists = counts.describes(rest) / nodes, counts.lists(rest) / nodes
        print(f"  beside it {', '.join(sorted(rest))}: {describes:.1f} Describe calls, {lists:.1f} lists")
    if found:
        print(f"  MISSED: {', '.join(found)}")
    sys.stdout.flush()
    return not found


def _targets(scene: Scene) -> str:
    if scene.nodes is None:
        return f"target {MOST_IDLE}"
    return f"targets {MOST_DESCRIBES}, {MOST_LISTS}" if scene.nodes == 1 else f"target {MOST_IN_RUNS} with schedules"


def _lines(scene: Scene, functions: Iterable[str], nodes: int) -> None:
    wanted = tuple(functions)
    aws = scene.counts.by_operation(scene.counts.aws, wanted)
    table = Counter({name: number for name, number in aws.items() if name.startswith("dynamodb:")})
    balancers = Counter({name: number for name, number in aws.items() if name.startswith(OTHERS_DESCRIBES)})
    for title, counted in (
        ("EC2, Auto Scaling", aws - table - balancers),
        ("load balancers", balancers),
        ("table (records)", table),
        ("Kubernetes", scene.counts.by_operation(scene.counts.kubernetes, wanted)),
    ):
        if counted:
            words = (f"{name.partition(':')[2] or name} {number / nodes:.3g}" for name, number in counted.most_common())
            print(f"  {title}: {', '.join(words)}")
