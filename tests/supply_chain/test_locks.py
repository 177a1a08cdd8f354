"""Locks: complete, in step with their inputs, with a hash for each package, and what is installed."""

import re
import subprocess
import sys
import tomllib
from importlib import metadata

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from supply_chain.locks import INPUTS, LockError, lock_of, out_of_step, read_input, read_lock
from tests.infra.conftest import ROOT

HASH = "0" * 64
OTHERS = {  # values of markers on the platforms and Pythons that are supported beside this one
    "linux-x86": {"sys_platform": "linux", "platform_machine": "x86_64"},
    "linux-arm": {"sys_platform": "linux", "platform_machine": "aarch64"},
    "macos": {"sys_platform": "darwin", "platform_machine": "arm64"},
    "3.11": {"python_version": "3.11", "python_full_version": "3.11.0"},
    "3.14": {"python_version": "3.14", "python_full_version": "3.14.0"},
}


@pytest.fixture(params=INPUTS)
def source(request):
    return request.param


@pytest.fixture
def lock(source):
    return read_lock(ROOT / lock_of(source))


def a_lock(folder, text):
    path = folder / "some.txt"
    path.write_text(text)
    return path


def test_every_package_of_the_input_is_locked_at_its_version(source, lock):
    assert out_of_step(read_input(ROOT / source), lock) == []


def test_the_lock_and_its_input_name_no_index_and_no_host(source):
    for path in (ROOT / source, ROOT / lock_of(source)):
        text = path.read_text()
        assert not re.search(r"://|index-url|find-links|trusted-host|\w\.(org|com|io|net)\b", text), path


def test_each_package_has_one_version_on_every_supported_platform(lock):
    for environment in OTHERS.values():
        names = [pin.name for pin in lock if pin.applies(environment)]
        assert len(names) == len(set(names))


def closure(requirements):
    """Names of all packages that the requirements bring along, as the installed packages declare it."""
    found, todo = set(), [(canonicalize_name(each.name), frozenset(each.extras)) for each in requirements]
    while todo:
        name, extras = item = todo.pop()
        if item in found:
            continue
        found.add(item)
        for needed in map(Requirement, metadata.requires(name) or ()):
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in (*extras, "")):
                todo.append((canonicalize_name(needed.name), frozenset(needed.extras)))
    return {name for name, _ in found}


@pytest.mark.parametrize("source", ["bootstrap.in", "requirements.in", "functions/requirements.in"])
def test_the_lock_names_what_its_input_brings_along_and_nothing_else(source, lock):
    """On this platform: pip refuses a lock with --require-hashes that lacks one."""
    assert {pin.name for pin in lock if pin.applies()} == closure(read_input(ROOT / source))


@pytest.mark.parametrize("source", ["bootstrap.in", "requirements.in"])
def test_the_locked_versions_are_those_that_are_installed(lock):
    """Otherwise the environment was not made by `make setup`."""
    assert {pin.name: metadata.version(pin.name) for pin in lock if pin.applies()} == {
        pin.name: pin.version for pin in lock if pin.applies()
    }


def test_the_locks_meet_what_the_project_declares():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = [*declared["project"]["dependencies"], *declared["build-system"]["requires"]]
    locked = read_lock(ROOT / "requirements.txt") + read_lock(ROOT / "bootstrap.txt")
    assert out_of_step(tuple(map(Requirement, needed)), locked) == []


def test_the_asset_s_packages_have_the_versions_that_tests_run_with():
    developed = {pin.name: pin.version for pin in read_lock(ROOT / "requirements.txt")}
    asset = {pin.name: pin.version for pin in read_lock(ROOT / "functions/requirements.txt")}
    assert asset.items() <= developed.items()


def test_two_locks_of_one_environment_agree():
    """Otherwise the one that is installed second changes what the first one installed."""
    bootstrap = {pin.name: pin.version for pin in read_lock(ROOT / "bootstrap.txt")}
    shared = [pin for pin in read_lock(ROOT / "requirements.txt") if pin.name in bootstrap]
    assert [pin.name for pin in shared] == ["pip"], "pip-audit brings it along"
    assert all(pin.version == bootstrap[pin.name] for pin in shared)


def test_pip_installs_from_locks_only():
    recipes = [line for line in (ROOT / "Makefile").read_text().splitlines() if "$(PIP) " in line]
    assert [line for line in recipes if "--require-hashes" not in line] == [
        '\t@$(STEP) "4/7 leeward" -- $(PIP) --no-deps --no-build-isolation --editable .'
    ]
    assert all(" -r " in line for line in recipes if "--require-hashes" in line)


def test_a_requirement_that_is_not_locked_is_named(tmp_path):
    lock = read_lock(a_lock(tmp_path, f"six==1.17.0 --hash=sha256:{HASH}\n"))
    wanted = (Requirement("six==1.17.0"), Requirement("six==1.16.0"), Requirement("attrs==26.1.0"))
    assert out_of_step(wanted, lock) == [
        "the lock has no six==1.16.0: run make lock",
        "the lock has no attrs==26.1.0: run make lock",
    ]


@pytest.mark.parametrize(
    "line",
    ["six==1.17.0", f"six>=1 --hash=sha256:{HASH}", "--index-url elsewhere", f"six --hash=sha256:{HASH}", "six==1 \\"],
)
def test_a_line_without_version_or_hash_is_refused(tmp_path, line):
    with pytest.raises(LockError, match=r"some\.txt: found"):
        read_lock(a_lock(tmp_path, f"{line}\n"))


def test_pip_refuses_a_file_whose_hash_is_not_locked(tmp_path):
    """The real pip, with a wheel on disk and no index."""
    import zipfile

    with zipfile.ZipFile(tmp_path / "planted-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("planted.py", "")
        wheel.writestr("planted-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: planted\nVersion: 1.0\n")
        wheel.writestr("planted-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("planted-1.0.dist-info/RECORD", "")
    lock = a_lock(tmp_path, f"planted==1.0 --hash=sha256:{HASH}\n")
    pip = [sys.executable, "-m", "pip", "install", "--isolated", "--no-index", f"--find-links={tmp_path}"]
    done = subprocess.run(
        [*pip, "--require-hashes", f"--target={tmp_path / 'out'}", "-r", str(lock)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode
    assert "DO NOT MATCH THE HASHES" in done.stderr
    assert not (tmp_path / "out").exists()
