"""Code of functions, unpacked once for all processes that run it, as `/var/task` is on Lambda.

ministack unpacks a package for each process into a folder of its own, where the process compiles every module that it
imports. In a shared folder the first process that imports a module compiles it for the others.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import tempfile
import threading
import zipfile
from pathlib import Path
from typing import Any

from ministack.core import lambda_runtime

from local.aws.pins import expect_source

_UNPACKED = "zf.extractall(code_dir)"
_unpacking = threading.Lock()


class SharedPackage(zipfile.ZipFile):
    """Package whose extraction links the empty target folder to the one copy of its content."""

    def extractall(self, path: Any = None, *_: Any) -> None:
        """Replace the empty folder `path` by a link to the shared copy. Raises OSError if `path` has content."""
        target = Path(path)
        copy = unpacked(Path(str(self.filename)))
        target.rmdir()
        target.symlink_to(copy, target_is_directory=True)


def install() -> None:
    """Patch the unpacking of a function's package."""
    source = inspect.getsource(lambda_runtime.Worker._spawn)
    expect_source("ministack", "lambda_runtime.Worker._spawn", source, _UNPACKED)
    lambda_runtime.zipfile = _Zipfile


def unpacked(package: Path) -> Path:
    """Return the folder with the package's content, named by its digest below the launcher's temporary files."""
    folder = Path(tempfile.gettempdir(), "code", hashlib.sha256(package.read_bytes()).hexdigest()[:32])
    with _unpacking:
        if not folder.exists():
            making = folder.with_suffix(f".{os.getpid()}")
            with zipfile.ZipFile(package) as archive:
                archive.extractall(making)
            making.rename(folder)
    return folder


class _Zipfile:
    """Names of `zipfile` that `lambda_runtime` uses."""

    ZipFile = SharedPackage
    BadZipFile = zipfile.BadZipFile
    LargeFileError = zipfile.LargeZipFile  # the name that it uses in place of LargeZipFile
