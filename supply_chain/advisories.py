"""Published weaknesses of the locked packages, Python's and npm's: `make audit`, a part of `make check`.

A weakness fails it. A source that does not answer in time does not, as a build must pass without a network: the lock is
printed as not run. The asset's few packages are asked for first, and show which source answers.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from supply_chain.locks import ASSET, BOOTSTRAP, DEVELOPMENT

FIRST_ANSWER = 20  # seconds for the asset's packages, and for npm's in one question
ALL_ANSWERS = 120  # seconds for the packages of a whole lock, one question each
SOURCES = ("pypi", "osv")  # those that pip-audit knows, in this order
AUDITED = (DEVELOPMENT, BOOTSTRAP)  # beside the asset's; the oldest SDK is old on purpose, and only in tests
NO_SOURCE = "not run: no advisory source answered"


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """Answer for one lock. `answered` False: no source knew any package. `unknown`: packages that the source did not
    know; `weaknesses`: one line each.
    """

    lock: str
    answered: bool
    weaknesses: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.answered:
            return f"{self.lock}: {NO_SOURCE}"
        found = "; ".join(self.weaknesses) or "no known weakness"
        unknown = f" (not known to the source: {', '.join(self.unknown)})" if self.unknown else ""
        return f"{self.lock}: {found}{unknown}"


def audit_python(lock: Path, source: str, *, seconds: float, options: Sequence[str] = ()) -> Audit:
    """Ask a source of pip-audit for all packages of a lock."""
    command = [sys.executable, "-m", "pip_audit", "--disable-pip", "--require-hashes", f"--requirement={lock}"]
    command += ["--format=json", "--progress-spinner=off", f"--vulnerability-service={source}", *options]
    dependencies = _answer(command, seconds, lock.parent).get("dependencies", [])
    known = [each for each in dependencies if "vulns" in each]
    return Audit(
        lock=_shown(lock),
        answered=bool(known),
        weaknesses=tuple(
            f"{each['name']} {each['version']} has {weakness['id']}, fixed in {_versions(weakness['fix_versions'])}"
            for each in known
            for weakness in each["vulns"]
        ),
        unknown=tuple(each["name"] for each in dependencies if "vulns" not in each),
    )


def audit_npm(root: Path, *, seconds: float, options: Sequence[str] = ()) -> Audit:
    """Ask npm's registry for all packages of `package-lock.json`."""
    npm = str(Path(sys.executable).parent / "npm")
    answer = _answer([npm, "audit", "--json", "--package-lock-only", *options], seconds, root)
    return Audit(
        lock="package-lock.json",
        answered="vulnerabilities" in answer,
        weaknesses=tuple(sorted({line for each in answer.get("vulnerabilities", {}).values() for line in _npm(each)})),
    )


def audits(root: Path) -> Iterator[Audit]:
    """Return the audits of all locks. Where no source answers for the asset, no other Python lock is asked for."""
    asset, source = _first_answer(root / ASSET)
    yield asset
    for lock in AUDITED:
        yield audit_python(root / lock, source, seconds=ALL_ANSWERS) if source else Audit(lock=lock, answered=False)
    yield audit_npm(root, seconds=FIRST_ANSWER)


def _first_answer(lock: Path) -> tuple[Audit, str | None]:
    """Return the audit of a lock by the first source that answers, and that source."""
    for source in SOURCES:
        audit = audit_python(lock, source, seconds=FIRST_ANSWER)
        if audit.answered:
            return audit, source
    return Audit(lock=_shown(lock), answered=False), None


def _npm(package: Mapping[str, Any]) -> Iterator[str]:
    """Return the advisories of a package; those that it only passes on from another one are texts."""
    for advisory in package["via"]:
        if isinstance(advisory, Mapping):
            yield f"{advisory['name']} {advisory['range']} has {advisory['title']} ({advisory['url']})"


def _shown(lock: Path) -> str:
    """Return the lock's name, with its folder where that distinguishes two."""
    return ASSET if lock.parent.name == "functions" else lock.name


def _versions(versions: Sequence[str]) -> str:
    return " or ".join(versions) or "no version yet"


def _answer(command: Sequence[str], seconds: float, folder: Path) -> Mapping[str, Any]:
    """Return the JSON that the command prints, whatever its exit code; an empty mapping without one in time."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds, cwd=folder)
        answer = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, json.JSONDecodeError):
        return {}
    return answer if isinstance(answer, dict) else {}


def main() -> int:
    """Print one line for each lock; the exit code is 1 for a weakness."""
    failed = False
    for audit in audits(Path.cwd()):
        print(audit)
        failed = failed or bool(audit.weaknesses)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
