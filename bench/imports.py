"""Cold import of each handler together with boto3 against `import boto3` alone. Target: at most 1.5 times.

Each import is a new process that sees the asset and nothing else of the project, as Lambda does; the interpreter's own
start is subtracted. CPU time, and boto3 anew on both sides of each import: a busy machine changes its speed within
seconds. What a handler imports at its first call is not in it: the planner of upgrades and rounds, the adapters of fn
interruption."""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

TARGET = 1.5
RUNS = 9
HANDLERS = (
    "leeward.interruption.handler",
    "leeward.termination.handler",
    "leeward.termination.drain_handler",
    "leeward.sync.handler",
    "leeward.upgrade.handler",
    "leeward.disruption.handler",
    "leeward.telling.handler",
)
FUNCTIONS = Path(__file__).resolve().parent.parent / "functions"


def run() -> bool:
    """Print the table; whether every handler meets the target."""
    with tempfile.TemporaryDirectory() as cache:
        found = {handler: _ratios(handler, cache) for handler in HANDLERS}
    for handler, ratios in found.items():
        low, median, high = statistics.quantiles(ratios, n=4)
        print(f"  {handler}: {median:.2f} x with boto3, half of the runs {low:.2f} to {high:.2f} (target {TARGET} x)")
    return all(round(statistics.median(ratios), 2) <= TARGET for ratios in found.values())


def _ratios(handler: str, cache: str) -> list[float]:
    together = f"import boto3, {handler}"
    _seconds(together, cache)  # compiles
    ratios = []
    for _ in range(RUNS):
        bare, before = _seconds("pass", cache), _seconds("import boto3", cache)
        ours, after = _seconds(together, cache), _seconds("import boto3", cache)
        ratios.append((ours - bare) / ((before + after) / 2 - bare))
    return ratios


def _seconds(statement: str, cache: str) -> float:
    environment = {**os.environ, "PYTHONPATH": str(FUNCTIONS), "PYTHONPYCACHEPREFIX": cache}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment |= {"POWERTOOLS_METRICS_NAMESPACE": "Leeward", "POWERTOOLS_SERVICE_NAME": "bench"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", statement], env=environment, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
