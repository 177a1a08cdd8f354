"""The wheel of the command line, byte by byte wherever it is built, and the lock of the packages that it needs."""

import os
import subprocess
import sys
import tomllib
import zipfile
from datetime import UTC, datetime

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from supply_chain.locks import DEVELOPMENT, out_of_step, read_lock
from supply_chain.wheel import LOCK, write_lock
from tests.infra.conftest import ROOT
from tests.supply_chain.test_locks import OTHERS, closure

WHEN = "1700000000"
BUILDERS = {
    "here": ("022", {"TZ": "UTC", "LC_ALL": "C", "PYTHONHASHSEED": "1"}),
    "elsewhere/in a folder": ("077", {"TZ": "Pacific/Auckland", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "2"}),
}
BUILD = "from pathlib import Path; from supply_chain.wheel import main; main(Path('{0}/source'), Path('{0}/dist'))"
SOURCES = ("functions", "pyproject.toml", "README.md", "LICENSE", DEVELOPMENT)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """The wheel of each builder: of a copy of the tree whose files have the modes of the builder's umask."""
    built = []
    for place, (umask, environment) in BUILDERS.items():
        folder = tmp_path_factory.mktemp("builder") / place
        copy = f"cp -r --no-preserve=all {' '.join(str(ROOT / name) for name in SOURCES)} source"
        build = f'cd {ROOT} && {sys.executable} -c "{BUILD.format(folder)}"'
        folder.mkdir(parents=True)
        subprocess.run(
            ["bash", "-c", f"umask {umask} && mkdir source && {copy} && {build}"],
            cwd=folder,
            env={**os.environ, **environment, "SOURCE_DATE_EPOCH": WHEN},
            check=True,
        )
        (wheel,) = (folder / "dist").glob("*.whl")
        built.append(wheel)
    return built


def test_another_umask_folder_zone_and_locale_make_the_same_wheel(wheels):
    first, second = wheels
    assert (first.stat().st_mode & 0o777, second.stat().st_mode & 0o777) == (0o644, 0o600)  # the umasks were at work
    assert first.name == second.name
    assert first.read_bytes() == second.read_bytes()


def test_every_user_reads_every_file_and_the_times_are_the_commits(wheels):
    with zipfile.ZipFile(wheels[1]) as archive:
        entries = archive.infolist()
    assert {entry.external_attr >> 16 for entry in entries} == {0o100644}
    assert {entry.date_time for entry in entries} == {datetime.fromtimestamp(int(WHEN), UTC).timetuple()[:6]}
    assert entries[-1].filename.endswith(".dist-info/RECORD")


def test_pip_takes_the_wheel(wheels, tmp_path):
    """It checks RECORD's digests and the archive's form."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--target", str(tmp_path / "out"), str(wheels[0])], check=True)
    assert (tmp_path / "out" / "leeward" / "cli" / "main.py").exists()


@pytest.fixture(scope="module")
def lock(tmp_path_factory):
    return write_lock(ROOT, tmp_path_factory.mktemp("lock"))


@pytest.fixture(scope="module")
def pins(lock, tmp_path_factory):
    """The packages of the lock: without the options of pip that begin it."""
    plain = tmp_path_factory.mktemp("plain") / "lock.txt"
    plain.write_text("".join(line for line in lock.read_text().splitlines(keepends=True) if line[:2] != "--"))
    return read_lock(plain)


@pytest.fixture(scope="module")
def declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return tuple(map(Requirement, project["dependencies"]))


def test_the_lock_has_all_that_the_command_line_needs_and_nothing_else(pins, declared):
    names = [pin.name for pin in pins]
    assert len(names) == len(set(names))
    assert set(names) == closure(declared)
    assert out_of_step(declared, pins) == []


def test_no_package_of_the_lock_is_missing_on_another_platform(pins):
    """A marker would hold what one of them needs: those that need none are the same everywhere."""
    for environment in OTHERS.values():
        assert all(pin.applies(environment) for pin in pins)


def test_versions_and_hashes_are_those_that_the_tests_run_with(pins):
    tested = {pin.name: pin for pin in read_lock(ROOT / DEVELOPMENT)}
    assert {pin.name: pin for pin in pins} == {canonicalize_name(pin.name): tested[pin.name] for pin in pins}


def test_pip_reads_the_lock_and_refuses_a_file_with_another_hash(lock, tmp_path):
    """The real pip, with a replaced package on disk and no index."""
    name = "cronsim-2.8"
    with zipfile.ZipFile(tmp_path / f"{name}-py3-none-any.whl", "w") as wheel:
        wheel.writestr("cronsim.py", "")
        wheel.writestr(f"{name}.dist-info/METADATA", "Metadata-Version: 2.1\nName: cronsim\nVersion: 2.8\n")
        wheel.writestr(f"{name}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{name}.dist-info/RECORD", "")
    only = "".join(
        part for part in _entries(lock.read_text()) if part.startswith(("#", "--require", "--only", "cronsim"))
    )
    (tmp_path / LOCK).write_text(only)
    pip = [sys.executable, "-m", "pip", "install", "--isolated", "--no-index", f"--find-links={tmp_path}"]
    done = subprocess.run(
        [*pip, f"--target={tmp_path / 'out'}", "-r", str(tmp_path / LOCK)], capture_output=True, text=True, check=False
    )
    assert done.returncode
    assert "DO NOT MATCH THE HASHES" in done.stderr


def _entries(text):
    """The lines of a lock, those of one package as one."""
    entry = ""
    for line in text.splitlines(keepends=True):
        if entry and not line.startswith(" "):
            yield entry
            entry = ""
        entry += line
    yield entry
