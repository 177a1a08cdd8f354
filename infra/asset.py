"""The one Lambda asset: pure-Python packages, the `leeward` package without its command line, and the API models of
the operations that it calls.

Built without Docker. What pip installs is kept under `build/` by the lines of the lock `functions/requirements.txt`, so
that a change of our own code costs a copy, and a synth without a network works once the packages are there. The asset's
digest is over the files themselves, packages included: a file that changed under `build/` makes another asset.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from hashlib import sha256
from pathlib import Path

import botocore

from infra.api_models import ADAPTERS, cut_models, names_in
from infra.bytecode import RUNTIME, compile_asset, runtime_python
from leeward.errors import InvalidInputError

# Wheels that run anywhere: no compiled file, so the machine that synthesizes need not be like the one that runs it.
# Their hashes are in the lock, so that a package that was replaced at its index is refused.
_PIP = (
    "--require-hashes",
    "--platform=any",
    "--implementation=py",
    "--abi=none",
    f"--python-version={RUNTIME}",
    "--only-binary=:all:",
    "--no-compile",
)
_BYTECODE = ("__pycache__", "*.pyc")
# Of our own package: no command line, and CloudFormation gets the definitions.
_LEFT_OUT = ("capture", "cli", "doctor", "folder", "*.asl.yaml", *_BYTECODE)
# Of Powertools, of which a test writes lines and points from the asset alone: nothing imports nine tenths of its files.
_UNUSED = ("aws_lambda_powertools/event_handler", "aws_lambda_powertools/utilities/[!_]*")
_USED = ("jmespath_utils",)  # in spite of these patterns: the Logger imports it
_KEPT = 5  # assets under build/
MODELS = "models"  # the folder of the asset that AWS_DATA_PATH names
_LAYOUT = "5"  # raise it when this file changes what an asset looks like
_OF_THE_INSTALLER = ("INSTALLER", "RECORD", "REQUESTED", "direct_url.json")  # pip wrote these, no package brought them


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """Folder ready to be zipped. `digest` depends on every file but bytecode and on whether they are `compiled`, not on
    the builder or the time: bytecode follows from its source, and differs between patch releases of Python.
    """

    folder: Path
    digest: str
    compiled: bool


def build_asset(root: Path) -> Asset:
    """Build (or find) the asset of the tree at `root`.

    Idempotent: the folder's name is its content's digest, and it appears by one rename, so two concurrent builds do no
    harm. Raises InvalidInputError when pip fails.
    """
    requirements = root / "functions" / "requirements.txt"
    source = root / "functions" / "leeward"
    packages = _packages(requirements, root / "build" / "packages")
    models = _models(root / ADAPTERS, root / "build" / "models")
    python = runtime_python()
    parts = [_LAYOUT, RUNTIME if python else "not compiled", *_lines(packages, ".", _BYTECODE)]
    parts += _lines(source, "leeward", _LEFT_OUT)
    parts += _lines(models, MODELS, ())
    digest = sha256("\n".join(parts).encode()).hexdigest()[:32]
    folder = root / "build" / "asset" / digest
    if not folder.exists():
        with _appearing(folder) as fresh:
            shutil.copytree(packages, fresh, ignore=shutil.ignore_patterns(*_BYTECODE), dirs_exist_ok=True)
            shutil.copytree(source, fresh / "leeward", ignore=shutil.ignore_patterns(*_LEFT_OUT))
            shutil.copytree(models, fresh / MODELS)
            if python is not None:
                compile_asset(fresh, python)
        _forget_old(folder.parent)
    return Asset(folder=folder, digest=digest, compiled=python is not None)


def _models(adapters: Path, kept: Path) -> Path:
    """Return a folder of models cut for the adapters' source; made when a name in it or botocore has changed."""
    names = names_in(adapters, _LEFT_OUT)
    digest = sha256("\n".join([_LAYOUT, botocore.__version__, *sorted(names)]).encode()).hexdigest()[:32]
    folder = kept / digest
    if not folder.exists():
        with _appearing(folder) as fresh:
            for path, model in cut_models(names).items():
                (fresh / path).parent.mkdir(parents=True, exist_ok=True)
                (fresh / path).write_bytes(model)
        _forget_old(kept)
    return folder


def _forget_old(folder: Path) -> None:
    """Delete old assets (or models) except the last few, which deployments in progress may still use. Every code
    change makes a new asset.
    """
    by_age = sorted(folder.glob("[!.]*"), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in by_age[_KEPT:]:
        shutil.rmtree(old, ignore_errors=True)


def _packages(requirements: Path, kept: Path) -> Path:
    wanted = [line.split("#")[0].strip() for line in requirements.read_text(encoding="utf-8").splitlines()]
    digest = sha256("\n".join([_LAYOUT, *_PIP, *filter(None, wanted)]).encode()).hexdigest()[:32]
    folder = kept / digest
    if not folder.exists():
        with _appearing(folder) as fresh:
            _install(requirements, fresh)
            shutil.rmtree(fresh / "bin", ignore_errors=True)  # scripts that name this machine's Python
            unused = [path for pattern in _UNUSED for path in fresh.glob(pattern) if path.name not in _USED]
            noted = [path for path in fresh.glob("*.dist-info/*") if path.name in _OF_THE_INSTALLER]
            for path in (*unused, *noted):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    return folder


def _install(requirements: Path, folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *_PIP]
    done = subprocess.run(
        [*command, f"--requirement={requirements}", f"--target={folder}"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["nothing"])[-1]
        raise InvalidInputError(f"{requirements.name}: pip cannot install the functions' packages: {said}")


@contextmanager
def _appearing(folder: Path) -> Iterator[Path]:
    """Fill a folder under another name, then rename it so that it appears complete; of two concurrent builds the first
    wins.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".making-") as making:
        fresh = Path(making) / folder.name
        fresh.mkdir()
        yield fresh
        try:
            fresh.rename(folder)
        except OSError:
            if not folder.exists():
                raise


def _lines(source: Path, place: str, left_out: Sequence[str]) -> Iterator[str]:
    """Return one line for each file of `source` that enters the asset below `place`: digest of its content, path."""
    for path in sorted(source.rglob("*")):
        relative = path.relative_to(source)
        if path.is_file() and not any(fnmatch(part, pattern) for part in relative.parts for pattern in left_out):
            yield f"{sha256(path.read_bytes()).hexdigest()} {place}/{relative.as_posix()}"
