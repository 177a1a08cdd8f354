"""Cold import of each handler against `import boto3` alone. Target: at most 1.5 times.

Each import is a new process that sees the asset and nothing else of the project, as Lambda does; the interpreter's own
start is subtracted. The second figure adds what the first invocation builds: its ports, up to the first client."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TARGET = 1.5
RUNS = 9
HANDLERS = (
    "leeward.interruption.handler",
    "leeward.termination.handler",
    "leeward.sync.handler",
    "leeward.upgrade.handler",
)
FUNCTIONS = Path(__file__).resolve().parent.parent / "functions"


def run() -> bool:
    """Print the table; whether every handler meets the target."""
    with tempfile.TemporaryDirectory() as cache:
        bare = _median("pass", cache)
        base = _median("import boto3", cache) - bare
        print(f"import boto3: {base * 1000:.0f} ms (median of {RUNS}, less {bare * 1000:.0f} ms interpreter start)")
        met = True
        for handler in HANDLERS:
            ratio = (_median(f"import {handler}", cache) - bare) / base
            with_boto3 = (_median(f"import boto3, {handler}", cache) - bare) / base
            met = met and with_boto3 <= TARGET
            print(f"  {handler}: {ratio:.2f} x alone, {with_boto3:.2f} x together with boto3 (target {TARGET} x)")
    return met


def _median(statement: str, cache: str) -> float:
    environment = {**os.environ, "PYTHONPATH": str(FUNCTIONS), "PYTHONPYCACHEPREFIX": cache}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment |= {"POWERTOOLS_METRICS_NAMESPACE": "Leeward", "POWERTOOLS_SERVICE_NAME": "bench"}
    seconds = []
    for _ in range(RUNS + 1):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", statement], env=environment, check=True)
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds[1:])  # the first run compiles
