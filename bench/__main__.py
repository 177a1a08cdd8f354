"""`make bench`: run every benchmark, or those named on the command line, with `--smallest` at a size that takes a
second. A benchmark that fails does not keep the others from running."""

import sys
import traceback
from collections.abc import Callable, Mapping

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
    spot_path,
    storm,
    upgrade,
)
from bench.calibration import calibration_seconds
from bench.smallest import SMALLEST

BENCHMARKS: Mapping[str, Callable[[], bool]] = {
    "imports": imports.run,
    "node-template": node_template.run,
    "placement": placement.run,
    "scheduling": scheduling.run,
    "packing": packing.run,
    "snapshot": snapshot.run,
    "pods": pods.run,
    "folder": folder.run,
    "disruption": disruption.run,
    "hostile": hostile.run,
    "spot-path": spot_path.run,
    "storm": storm.run,
    "cost": cost.run,
    "calls": calls.run,
    "simulation": simulation.run,
    "upgrade": upgrade.run,
}


def main(arguments: list[str]) -> int:
    """Run the benchmarks and return exit code 0 when every one has run and met its targets; at the smallest sizes,
    where targets mean nothing, when every one has run.
    """
    smallest = "--smallest" in arguments
    names = [argument for argument in arguments if argument != "--smallest"]
    known = SMALLEST if smallest else BENCHMARKS
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"found {', '.join(unknown)}, expected some of {', '.join(known)}", file=sys.stderr)
        return 2
    print(f"calibration: {calibration_seconds():.3f} s for ten million additions\n")
    missed, failed = [], []
    for name in names or known:
        try:
            if not known[name]():
                missed.append(name)
        except Exception:  # noqa: BLE001 - whatever it is, the others have figures to print
            traceback.print_exc()
            print(f"{name}: FAILED", flush=True)
            failed.append(name)
    for title, ended in (("failed", failed), ("missed a target", [] if smallest else missed)):
        if ended:
            print(f"\n{title}: {', '.join(ended)}")
    return 1 if failed or (missed and not smallest) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
