"""The documentation as a site, built once into a temporary folder as `make docs` builds it."""

import os
import subprocess
import sys

import pytest


def build(*arguments):
    """Run MkDocs as `make docs` does, with these arguments; standard error in the result names every warning."""
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONDONTWRITEBYTECODE": "1"},
    )


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """Folder of the built site."""
    folder = tmp_path_factory.mktemp("site")
    done = build("--site-dir", folder)
    assert done.returncode == 0, done.stderr
    return folder
