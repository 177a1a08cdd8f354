"""`make bench`: run every benchmark, or those named on the command line."""

import sys

from bench import (
    calls,
    cost,
    disruption,
    folder,
    hostile,
    imports,
    node_template,
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

BENCHMARKS = {
    "imports": imports.run,
    "node-template": node_template.run,
    "placement": placement.run,
    "scheduling": scheduling.run,
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


def main(names: list[str]) -> int:
    """Run the benchmarks and return exit code 0 when every target is met."""
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"found {', '.join(unknown)}, expected some of {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    print(f"calibration: {calibration_seconds():.3f} s for ten million additions\n")
    met = [BENCHMARKS[name]() for name in names or BENCHMARKS]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
