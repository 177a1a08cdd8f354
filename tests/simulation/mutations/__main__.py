"""`python -m tests.simulation.mutations [WORD]`: the table of the simulation's page, for builds named with WORD."""

import sys

from tests.simulation.mutations.build import SEEDS, caught
from tests.simulation.mutations.every import EVERY

if __name__ == "__main__":
    sys.stdout.write(f"| broken build | worlds | caught at seed (of {SEEDS}) | by |\n|---|---|---|---|\n")
    for mutation in EVERY:
        if all(word in mutation.name for word in sys.argv[1:]):
            found = caught(mutation)
            seed, rule = (str(found.seed), found.rule.value) if found else ("never", "")
            sys.stdout.write(f"| {mutation.name} | {mutation.scenario.name} | {seed} | {rule} |\n")
            sys.stdout.flush()
