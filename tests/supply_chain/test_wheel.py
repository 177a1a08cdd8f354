"""The wheel of the command line, installed without a clone: everything that it reads is in it."""

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from leeward import __version__

pytestmark = pytest.mark.long

SNAPSHOT = Path("tests/cli/snapshots/small").resolve()


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder of the commands of an environment that has the wheel, and the libraries of this one."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    subprocess.run(["git", "clone", "--quiet", str(Path.cwd()), str(source)], check=True)
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder))
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, str(source)], check=True)
    environment = folder / "environment"
    venv.create(environment, with_pip=False)
    (library,) = (environment / "lib").glob("python3*/site-packages")
    (wheel,) = folder.glob("leeward-*.whl")
    pip = (sys.executable, "-m", "pip", "--python", str(environment / "bin" / "python"), "install", "--quiet")
    subprocess.run([*pip, "--no-deps", "--no-index", str(wheel)], check=True)
    (library / "libraries.pth").write_text(sysconfig.get_path("purelib"))
    return environment / "bin"


def run(installed, *arguments):
    """Run `leeward` in an empty folder."""
    return subprocess.run(
        [str(installed / "leeward"), *arguments], cwd=installed, capture_output=True, text=True, check=False, env={}
    )


def test_the_wheel_is_used_and_not_the_clone(installed):
    code = "import leeward; print(leeward.__file__)"
    found = subprocess.run([str(installed / "python"), "-c", code], capture_output=True, text=True, check=True)
    assert Path(found.stdout.strip()).is_relative_to(installed.parent)


def test_it_says_its_version(installed):
    assert run(installed, "version").stdout == f"leeward {__version__}\n"


@pytest.mark.parametrize("command", ["plan", "blockers", "inspect budget", "drift"])
def test_it_works_on_a_snapshot(installed, command):
    done = run(installed, *command.split(), "--snapshot", str(SNAPSHOT))
    assert done.returncode in {0, 1}, done.stderr
    assert "Traceback" not in done.stderr


def test_it_reads_policies(installed):
    assert run(installed, "policy", "validate", str(SNAPSHOT / "policy.yaml")).returncode == 0
