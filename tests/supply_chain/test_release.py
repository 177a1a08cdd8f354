"""`make release`: of a commit alone, the same bytes wherever it is built, with a statement about each file."""

import io
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from supply_chain.package import digest, write_sums
from supply_chain.progress import announced
from supply_chain.release import STATEMENT, ReleaseError, clean_commit, main, statement
from tests.infra.conftest import ROOT

BUILDERS = (
    ("one", "022", {"TZ": "UTC", "LC_ALL": "C", "PYTHONHASHSEED": "1"}, 0),
    ("two/in a folder", "077", {"TZ": "Pacific/Auckland", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "2"}, 1_000_000_000),
)


@pytest.fixture
def tree(tmp_path):
    """A repository with a commit."""
    root = tmp_path / "tree"
    root.mkdir()
    (root / "a.txt").write_text("a")
    git = ["git", "-C", str(root), "-c", "user.name=n", "-c", "user.email=e"]
    for arguments in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "a"]):
        subprocess.run([*git, *arguments], check=True)
    return root


def test_a_tree_that_differs_from_its_commit_is_not_released(tree, tmp_path, capsys):
    assert len(clean_commit(tree)) == 40
    (tree / "b.txt").write_text("b")
    with pytest.raises(ReleaseError, match=r"b\.txt"):
        clean_commit(tree)
    assert main(tree, tmp_path / "release") == 1
    assert not (tmp_path / "release").exists()
    assert "no release" in capsys.readouterr().err


def test_the_statement_has_the_digest_of_every_file_and_of_the_source(tmp_path):
    (tmp_path / "a.whl").write_text("a")
    (tmp_path / "b.zip").write_text("b")
    write_sums(tmp_path)
    made = statement(ROOT, tmp_path, "c" * 40)
    assert {item["name"]: item["digest"]["sha256"] for item in made["subject"]} == {
        name: digest(tmp_path / name) for name in ("a.whl", "b.zip")
    }
    source, *locks = made["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert source["digest"] == {"gitCommit": "c" * 40}
    assert all(item["digest"]["sha256"] == digest(ROOT / item["name"]) for item in locks)
    assert str(tmp_path) not in json.dumps(made)


def test_a_step_says_that_it_runs_and_how_long_it_took():
    out = io.StringIO()
    with announced("1/4 asset", out, period=0.02):
        time.sleep(0.1)
    first, *between, last = out.getvalue().splitlines()
    assert (first, last) == ("1/4 asset …", "1/4 asset: 0 s")
    assert set(between) == {"1/4 asset … 0 s"}


@pytest.mark.long
def test_two_builders_write_the_same_bytes(tmp_path):
    folders = [released(tmp_path / place, umask, given, moment) for place, umask, given, moment in BUILDERS]
    sums = [(folder / "SHA256SUMS").read_text() for folder in folders]
    assert sums[0] == sums[1]
    assert STATEMENT in sums[0]
    for folder in folders:
        subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=folder, check=True)


def released(place: Path, umask: str, given: dict[str, str], moment: int) -> Path:
    """Return the release of a clone. What pip has fetched for the asset is copied, as an index may not answer."""
    place.mkdir(parents=True)
    subprocess.run(["bash", "-c", f"umask {umask} && git clone --quiet '{ROOT}' source"], cwd=place, check=True)
    source = place / "source"
    for path in source.rglob("*.*"):
        if moment and ".git" not in path.parts:
            os.utime(path, (moment, moment))
    if (ROOT / "build" / "packages").exists():
        shutil.copytree(ROOT / "build" / "packages", source / "build" / "packages")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, **given, "PATH": path, "PYTHONPATH": f"{source}:{source}/functions"}
    command = f"umask {umask} && '{sys.executable}' -m supply_chain.release"
    done = subprocess.run(
        ["bash", "-c", command], cwd=source, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return source / "build" / "release"
