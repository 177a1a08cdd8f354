"""Bytecode of the asset for the functions' runtime.

Lambda's code folder is read-only: modules not compiled in the asset are compiled again at every cold start. Bytecode
fits one minor version of Python, so compiling needs an interpreter of the runtime's version; without one the asset
works, but starts more slowly. Methods that dataclasses generate at run time are compiled into a file of their own
(`leeward/generated_code.py`).
"""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import botocore

from leeward.errors import InvalidInputError

RUNTIME = "3.13"
TASK_ROOT = "/var/task"  # where Lambda unpacks the asset; tracebacks name files under it
_RECORDER = """
import contextlib, importlib, json, sys
sys.path[:0] = json.loads(sys.argv[1])
from leeward import generated_code
found = generated_code.record()
for module in json.loads(sys.argv[2]):
    with contextlib.suppress(Exception):
        importlib.import_module(module)
generated_code.write(found)
"""


def runtime_python() -> str | None:
    """Return an interpreter of the functions' runtime, from the PATH or from pyenv; None if there is none."""
    for candidate in _candidates():
        asked = subprocess.run([candidate, "--version"], capture_output=True, text=True, check=False)
        if asked.returncode == 0 and asked.stdout.startswith(f"Python {RUNTIME}."):
            return candidate
    return None


def compile_asset(folder: Path, python: str) -> None:
    """Write `__pycache__` for every module. Lambda keeps no modification times, so the files use unchecked hashes (PEP
    552). Raises InvalidInputError for a module that does not compile.
    """
    options = ["-q", "--invalidation-mode", "unchecked-hash", "-s", str(folder), "-p", TASK_ROOT]
    done = subprocess.run(
        [python, "-I", "-m", "compileall", *options, str(folder)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise InvalidInputError(f"Python {RUNTIME} cannot compile the functions' code: {done.stdout.strip()}")
    _write_generated_code(folder, python)


def _write_generated_code(folder: Path, python: str) -> None:
    """Import every module of the asset beside this machine's SDK, and write what its dataclasses generate. A module
    that cannot be imported here starts more slowly there.
    """
    modules = sorted(
        ".".join(path.relative_to(folder).with_suffix("").parts)
        for path in (folder / "leeward").rglob("*.py")
        if path.name != "__init__.py"
    )
    path = [str(folder), str(Path(botocore.__file__).parent.parent)]
    command = [python, "-I", "-S", "-B", "-c", _RECORDER, json.dumps(path), json.dumps(modules)]
    subprocess.run(command, capture_output=True, check=False, env={})


def _candidates() -> Iterator[str]:
    found = shutil.which(f"python{RUNTIME}")
    if found is not None:
        yield found
    for path in sorted((Path.home() / ".pyenv" / "versions").glob(f"{RUNTIME}*/bin/python")):
        yield str(path)
