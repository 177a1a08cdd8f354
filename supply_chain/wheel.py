"""The command line as a wheel, `make wheel`, and the lock of the packages that it needs.

The same commit makes the same wheel byte by byte, whatever the umask, folder, time zone and locale of its builder:
the archive that setuptools writes is written again with the commit's time, one mode and no compression."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from supply_chain.locks import DEVELOPMENT

FOLDER = Path("build/dist")
LOCK = "leeward-cli-requirements.txt"
EARLIEST = (1980, 1, 1, 0, 0, 0)  # of a ZIP archive
READABLE = 0o100644 << 16  # by every user
_PACKAGE = re.compile(r"^([A-Za-z0-9._-]+)==")
_NEEDED_BY = re.compile(r"^ +# via (.*)$")
_HEADER = """# Packages of Leeward's command line, for every Python from 3.11 on and every platform, with their hashes.
# pip install -r this file; then the wheel, with --no-deps.
--require-hashes
--only-binary :all:
"""


def main(root: Path | None = None, folder: Path = FOLDER) -> int:
    """Write the wheel and its lock, and print both."""
    root = root or Path.cwd()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    print(write_wheel(root, folder, commit_time(root, os.environ)))
    print(write_lock(root, folder))
    return 0


def commit_time(root: Path, environment: Mapping[str, str]) -> datetime:
    """Return SOURCE_DATE_EPOCH, else the time of the commit at `root`, else 1980."""
    given = environment.get("SOURCE_DATE_EPOCH")
    if given is None:
        command = ["git", "-C", str(root), "log", "-1", "--format=%ct"]
        asked = subprocess.run(command, capture_output=True, text=True, check=False)
        given = asked.stdout.strip() if asked.returncode == 0 else ""
    return datetime.fromtimestamp(int(given), UTC) if given else datetime(*EARLIEST, tzinfo=UTC)


def write_wheel(root: Path, folder: Path, when: datetime) -> Path:
    """Build the wheel of the tree at `root` and return its path in the folder."""
    shutil.rmtree(root / "build" / "lib", ignore_errors=True)
    options = ("--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation", "--wheel-dir")
    with tempfile.TemporaryDirectory() as built:
        subprocess.run([sys.executable, "-m", "pip", "wheel", *options, built, str(root)], check=True)
        (wheel,) = Path(built).glob("*.whl")
        _normalise(wheel, folder / wheel.name, when)
    return folder / wheel.name


def write_lock(root: Path, folder: Path) -> Path:
    """Write the lock of the command line and return its path: a part of the one that the tests are run with."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names: set[str] = {canonicalize_name(Requirement(needed).name) for needed in project["dependencies"]}
    path = folder / LOCK
    path.write_text(_HEADER + _part((root / DEVELOPMENT).read_text(encoding="utf-8"), names), encoding="utf-8")
    return path


def _normalise(source: Path, target: Path, when: datetime) -> None:
    """Write the archive again, entries in their order: RECORD stays the last, and has the digests of the others."""
    moment = max(when.timetuple()[:6], EARLIEST)
    with zipfile.ZipFile(source) as built, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name in built.namelist():
            entry = zipfile.ZipInfo(name, moment)
            entry.external_attr = READABLE
            entry.create_system = 3  # Unix, on every machine
            archive.writestr(entry, built.read(name))


def _part(lock: str, names: set[str]) -> str:
    """Return the entries of the packages and of all that these need, as the lock says it beside each."""
    entries = dict(_entries(lock))
    wanted = set[str]()
    while names - wanted:
        wanted |= names
        names = {name for name, (_, needed_by) in entries.items() if needed_by & wanted} | wanted
    return "".join(text for name, (text, _) in entries.items() if name in wanted)


def _entries(lock: str) -> Iterator[tuple[str, tuple[str, set[str]]]]:
    """Yield (name, (lines, names of packages that need it)) of each package."""
    name, lines, needed_by = "", list[str](), set[str]()
    for line in [*lock.splitlines(), "end=="]:
        if (found := _PACKAGE.match(line)) is not None:
            if name:
                yield name, ("".join(f"{one}\n" for one in lines), needed_by)
            name, lines, needed_by = canonicalize_name(found[1]), [], set()
        if (via := _NEEDED_BY.match(line)) is not None:
            needed_by = {canonicalize_name(part) for part in via[1].split(", ")}
        elif not line.startswith("#"):
            lines.append(line)


if __name__ == "__main__":
    sys.exit(main())
