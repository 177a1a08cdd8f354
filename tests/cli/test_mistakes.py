"""Every mistake of the table ends in one sentence with the fix, and with its exit code."""

import shlex

import pytest

from tests.cli.mistakes import MISTAKES


@pytest.fixture(autouse=True)
def _without_aws(monkeypatch, tmp_path):
    """No credentials, no Region, no profile, and none that a metadata service would give."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def test_no_mistake_is_listed_twice():
    assert len(MISTAKES) >= 100
    assert len({arguments for arguments, _, _ in MISTAKES}) == len(MISTAKES)


@pytest.mark.parametrize(("arguments", "code", "sentence"), MISTAKES, ids=[one[0] for one in MISTAKES])
def test_a_mistake_ends_in_one_sentence(leeward, arguments, code, sentence):
    result = leeward(*shlex.split(arguments))
    assert (result.code, result.out) == (code, "")
    assert sentence in result.err
    assert result.err.startswith("leeward: ")
    assert len(result.err.splitlines()) == 1
    assert "usage:" not in result.err
    assert "Traceback" not in result.err
