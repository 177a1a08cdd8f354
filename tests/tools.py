"""Programs that some tests need and `make setup` does not install."""

import os
import shutil

import pytest

INSTALL = "make tools installs it"


def need(program: str) -> str:
    """Return the path of the program. Without it the test is skipped, and reported as not run; in CI it fails."""
    found = shutil.which(program)
    if found is None:
        missing = f"not run: no {program} here ({INSTALL})"
        assert os.environ.get("CI") != "true", missing
        pytest.skip(missing)
    return found
