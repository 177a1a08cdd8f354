"""Peak memory of this process."""

import resource
import sys
from pathlib import Path

_STATUS = Path("/proc/self/status")


def peak_megabytes() -> int:
    """Return the peak since the program was started: on Linux getrusage also counts what the process that started it
    held before.
    """
    if _STATUS.is_file():
        line = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) // 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak // (1024 * 1024 if sys.platform == "darwin" else 1024)
