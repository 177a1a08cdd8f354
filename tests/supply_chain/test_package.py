"""The files of `make package`: what they are named, that they are made again byte by byte."""

import json
import os
import shutil
import subprocess
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from leeward import __version__
from supply_chain.package import write_archive, write_sums, written
from supply_chain.wheel import commit_time


@pytest.fixture
def asset(tmp_path):
    """A folder as the asset is one: nested, with a file that only its owner could read."""
    folder = tmp_path / "asset"
    (folder / "leeward" / "drain").mkdir(parents=True)
    (folder / "leeward" / "__init__.py").write_text("")
    (folder / "leeward" / "drain" / "handler.py").write_text("print()\n" * 100)
    (folder / "leeward" / "drain" / "handler.py").chmod(0o600)
    (folder / "cronsim.py").write_text("x = 1\n")
    return folder


def test_the_same_files_make_the_same_archive_at_another_time_in_another_folder(asset, tmp_path):
    first = write_archive(asset, tmp_path)
    copy = tmp_path / "elsewhere"
    for path in sorted(asset.rglob("*"), reverse=True):  # in another order
        if path.is_file():
            (copy / path.relative_to(asset)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy / path.relative_to(asset))
            os.utime(copy / path.relative_to(asset), (1, 1))
    target = tmp_path / "other"
    target.mkdir()
    second = write_archive(copy, target)
    assert second.name == first.name
    assert second.read_bytes() == first.read_bytes()


def test_the_archive_is_named_after_version_and_content(asset, tmp_path):
    first = write_archive(asset, tmp_path)
    (asset / "cronsim.py").write_text("x = 2\n")
    second = write_archive(asset, tmp_path)
    assert first.name.startswith(f"leeward-{__version__}-")
    assert second.name != first.name


def test_lambda_may_read_every_file_of_the_archive(asset, tmp_path):
    with zipfile.ZipFile(write_archive(asset, tmp_path)) as archive:
        entries = archive.infolist()
    assert [entry.filename for entry in entries] == ["cronsim.py", "leeward/__init__.py", "leeward/drain/handler.py"]
    assert {entry.external_attr >> 16 & 0o777 for entry in entries} == {0o644}


def test_sha256sum_accepts_the_sums_and_names_a_file_that_was_changed(tmp_path):
    (tmp_path / "a.json").write_text("{}")
    (tmp_path / "b.zip").write_text("b")
    write_sums(tmp_path)
    assert _checked(tmp_path).returncode == 0
    (tmp_path / "b.zip").write_text("c")
    refused = _checked(tmp_path)
    assert refused.returncode == 1
    assert "b.zip: FAILED" in refused.stdout


def _checked(folder):
    command = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_template_has_one_line_for_each_resource_and_is_the_same_json():
    template = {"Description": "x", "Resources": {"A": {"Type": "T", "Properties": {"P": [1, 2]}}, "B": {"Type": "U"}}}
    text = written(template)
    assert json.loads(text) == template
    assert '"A": {"Type":"T","Properties":{"P":[1,2]}}' in text.replace(",\n", "\n").splitlines()


def test_a_template_that_cloudformation_would_refuse_is_not_written():
    with pytest.raises(ValueError, match="CloudFormation takes"):
        written({"Resources": {"A": {"Description": "x" * 1_000_000}}})


def test_the_time_in_the_package_is_that_of_the_commit_unless_a_build_names_one(tmp_path):
    given = commit_time(tmp_path, {"SOURCE_DATE_EPOCH": "1700000000"})
    assert given == datetime.fromtimestamp(1700000000, UTC)
    assert commit_time(tmp_path, {}) == datetime(1980, 1, 1, tzinfo=UTC)  # no git there
    root = Path(__file__).resolve().parents[2]
    if (root / ".git").exists():
        assert commit_time(root, {}).year >= 2024
