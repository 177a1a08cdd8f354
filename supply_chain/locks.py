"""Locks: files that name every package, transitive ones included, with one version and the hashes of its files.

`make lock` resolves each input (`*.in`) into its lock (`*.txt`). pip installs from locks only, with --require-hashes:
an index can neither replace a file nor add a package.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

INPUTS = ("bootstrap.in", "requirements.in", "functions/requirements.in", "functions/oldest-sdk.in")
ASSET = "functions/requirements.txt"
DEVELOPMENT = "requirements.txt"
BOOTSTRAP = "bootstrap.txt"

_HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")
_COMMENT = re.compile(r"(^|\s)#.*$")


class LockError(ValueError):
    """Line of a lock that pins no version or names no hash."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """Package of a lock. `hashes`: sha256 in hexadecimal digits, one for each of its files."""

    requirement: Requirement
    hashes: tuple[str, ...]

    @property
    def name(self) -> str:
        """Normalized name."""
        return canonicalize_name(self.requirement.name)

    @property
    def version(self) -> str:
        """Version that is locked."""
        return next(iter(self.requirement.specifier)).version

    def applies(self, environment: dict[str, str] | None = None) -> bool:
        """Return whether its marker holds here, or with the values of `environment`, such as `sys_platform`."""
        marker = self.requirement.marker
        return marker is None or marker.evaluate(environment)


def lock_of(source: str) -> str:
    """Return the lock of an input."""
    return f"{source.removesuffix('.in')}.txt"


def read_lock(path: Path) -> tuple[Pin, ...]:
    """Return the packages of a lock. Raises LockError for anything else than a comment or a pin with its hashes."""
    return tuple(_pin(path.name, line) for line in _lines(path))


def read_input(path: Path) -> tuple[Requirement, ...]:
    """Return the requirements of an input."""
    return tuple(Requirement(line) for line in _lines(path))


def out_of_step(requirements: tuple[Requirement, ...], lock: tuple[Pin, ...]) -> list[str]:
    """Return one sentence for each requirement that the lock does not meet."""
    return [
        f"the lock has no {requirement}: run make lock"
        for requirement in requirements
        if not any(
            pin.name == canonicalize_name(requirement.name) and requirement.specifier.contains(pin.version)
            for pin in lock
        )
    ]


def _lines(path: Path) -> Iterator[str]:
    """Return the lines without comments, those that end in a backslash joined."""
    kept = (_COMMENT.sub("", line).strip() for line in path.read_text(encoding="utf-8").splitlines())
    return filter(None, (line.strip() for line in "\n".join(kept).replace("\\\n", " ").splitlines()))


def _pin(source: str, line: str) -> Pin:
    hashes = tuple(found.removeprefix("--hash=sha256:") for found in _HASH.findall(line))
    try:
        requirement = Requirement(_HASH.sub("", line).strip())
    except InvalidRequirement as error:
        raise LockError(f"{source}: found {line!r}, expected a package with its hashes") from error
    operators = [specifier.operator for specifier in requirement.specifier]
    if operators != ["=="] or requirement.url:
        raise LockError(f"{source}: found {requirement}, expected one exact version")
    if not hashes:
        raise LockError(f"{source}: found {requirement} without a hash")
    return Pin(requirement=requirement, hashes=hashes)
