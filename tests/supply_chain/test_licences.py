"""Licences: all are known and allowed, and the page lists them."""

import shutil

import pytest

from supply_chain.licences import (
    DEVELOPMENT_ONLY,
    PERMISSIVE,
    Licensed,
    licence_of,
    npm_packages,
    page,
    python_packages,
)
from supply_chain.locks import ASSET, BOOTSTRAP, DEVELOPMENT, read_lock
from tests.infra.conftest import ROOT


def refused(packages, licences):
    return [f"{each.name}: {each.licence or 'none known'}" for each in packages if not each.allowed(licences)]


def test_the_asset_contains_only_permissive_licences():
    assert refused(python_packages(read_lock(ROOT / ASSET)), PERMISSIVE) == []


@pytest.mark.parametrize("lock", [DEVELOPMENT, BOOTSTRAP, "functions/oldest-sdk.txt"])
def test_no_other_licence_enters_the_development_environment(lock):
    assert refused(python_packages(read_lock(ROOT / lock)), DEVELOPMENT_ONLY) == []


def test_no_other_licence_enters_by_npm():
    packages = npm_packages(ROOT)
    assert len(packages) > 10
    assert refused(packages, DEVELOPMENT_ONLY) == []


def test_the_page_is_what_the_locks_say():
    assert (ROOT / "supply_chain" / "licences.md").read_text() == page(ROOT), "run make licences"


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("Apache-2.0 OR BSD-3-Clause", True),
        ("GPL-3.0-only OR MIT", True),
        ("MIT AND GPL-3.0-only", False),
        ("MPL-2.0 AND (Apache-2.0 OR MIT)", False),
        ("AGPL-3.0-only", False),
        ("GPL-2.0-only WITH Classpath-exception-2.0", False),
        ("", False),
    ],
)
def test_of_alternatives_one_suffices_and_of_a_sum_each_must_be_allowed(expression, allowed):
    assert Licensed(name="x", version="1", licence=expression).allowed(PERMISSIVE) is allowed


def test_copyleft_of_a_file_is_for_development_alone():
    hypothesis = Licensed(name="hypothesis", version="1", licence=licence_of("hypothesis"))
    assert hypothesis.licence == "MPL-2.0"
    assert hypothesis.allowed(DEVELOPMENT_ONLY)
    assert not hypothesis.allowed(PERMISSIVE)


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a package that is nothing but its metadata."""

    def inner(**stated):
        folder = tmp_path / "planted-1.0.dist-info"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        lines = [f"{key.replace('_', '-')}: {value}" for key, value in stated.items()]
        (folder / "METADATA").write_text("\n".join(["Metadata-Version: 2.4", "Name: planted", "Version: 1.0", *lines]))
        monkeypatch.syspath_prepend(tmp_path)

    return inner


@pytest.mark.parametrize(
    ("stated", "licence"),
    [
        ({"License_Expression": "GPL-3.0-only", "License": "MIT"}, "GPL-3.0-only"),
        ({"License": "MIT License"}, "MIT"),
        ({"License": "see the file", "Classifier": "License :: OSI Approved :: ISC License (ISCL)"}, "ISC"),
        ({"License": "Freeware"}, ""),
        ({"Classifier": "License :: OSI Approved :: GNU General Public License v3 (GPLv3)"}, ""),
        ({}, ""),
    ],
)
def test_a_package_says_its_licence_in_one_of_three_places_or_is_not_known(install, stated, licence):
    install(**stated)
    assert licence_of("planted") == licence
