"""Finding and running real kubectl binaries."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path


def binaries() -> list[Path]:
    """The kubectl on PATH, and every `kubectl.1.*` that lies beside it (after resolving links)."""
    found = shutil.which("kubectl")
    if found is None:
        return []
    first = Path(found)
    beside = first.resolve().parent.glob("kubectl.1.*")
    return [first, *sorted(path for path in beside if os.access(path, os.X_OK))]


def version_of(binary: Path) -> str:
    """What the client calls itself, such as v1.32.4."""
    words = subprocess.run([binary, "version", "--client"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"v1\.\d+\.\d+", words)
    return found.group() if found else "of unknown version"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one call printed (both streams) and returned."""

    code: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubectl:
    """One binary against one cluster, with a home and a cache of its own."""

    binary: Path
    home: Path
    kubeconfig: Path

    @property
    def minor(self) -> int:
        """The 32 of v1.32.4; 0 when the binary does not say."""
        found = re.search(r"v1\.(\d+)", version_of(self.binary))
        return int(found.group(1)) if found else 0

    def run(self, *arguments: str, text: str | None = None, seconds: float = 240) -> Run:
        done = subprocess.run(
            [self.binary, *arguments],
            env=self.environment(),
            input=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=seconds,
            check=False,
        )
        return Run(code=done.returncode, text=done.stdout)

    def ok(self, *arguments: str, text: str | None = None) -> str:
        """The output of a call that must succeed."""
        done = self.run(*arguments, text=text)
        assert done.code == 0, f"kubectl {' '.join(arguments)}: {done.text}"
        return done.text

    def environment(self) -> dict[str, str]:
        return {"HOME": str(self.home), "KUBECONFIG": str(self.kubeconfig), "PATH": os.environ["PATH"]}
