"""Every mistake of the tables ends in one sentence with the fix, and with its exit code."""

import shlex

import pytest

from leeward.adapters import wiring
from leeward.errors import AccessDeniedError, AwsUnreachableError, ObjectGoneError
from tests.cli.command import a_snapshot
from tests.cli.mistakes import MISTAKES
from tests.cli.mistakes_in_files import EMPTY, FOLDERS, IN_FILES, LIVE
from tests.fakes.builders import CLUSTER, GROUP, a_group, a_node, an_instance
from tests.fakes.system import FakeSystem


@pytest.fixture(autouse=True)
def _without_aws(monkeypatch, tmp_path):
    """No credentials, no Region, no profile, and none that a metadata service would give."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def usual():
    origins = frozenset({("111122223333", "eu-west-1")})
    return FakeSystem(instances=[an_instance()], groups=[a_group(GROUP, "i-0abc")], nodes=[a_node()], origins=origins)


def unreadable(error):
    system = usual()
    for method in ("node", "nodes", "pods", "read"):
        system.kubernetes.fail(method, error)
    return system


def no_cluster():
    gone = ObjectGoneError(f"eks:DescribeCluster on {CLUSTER}: ResourceNotFoundException: No cluster found for name")
    return unreadable(gone)


def denied():
    return unreadable(AccessDeniedError("list nodes: forbidden"))


def not_deployed():
    system = usual()
    system.disruptions.fail("read", AccessDeniedError("dynamodb:GetItem on leeward: no such table"))
    return system


def no_region():
    raise AwsUnreachableError("sts:GetCallerIdentity on the default credentials: no answer")


CLUSTERS = {one.__name__: one for one in (usual, no_cluster, denied, not_deployed, no_region)}


def ends_in_one_sentence(result, code, sentence):
    assert (result.code, result.out) == (code, "")
    assert sentence in result.err
    assert result.err.startswith("leeward: ")
    assert len(result.err.splitlines()) == 1
    assert "usage:" not in result.err
    assert "Traceback" not in result.err


def test_no_mistake_is_listed_twice():
    asked = [one[0] for one in (*MISTAKES, *IN_FILES)] + [one[:2] for one in LIVE]
    assert len(asked) >= 180
    assert len(set(asked)) == len(asked)


@pytest.mark.parametrize(("arguments", "code", "sentence"), MISTAKES, ids=[one[0] for one in MISTAKES])
def test_a_mistake_ends_in_one_sentence(leeward, arguments, code, sentence):
    ends_in_one_sentence(leeward(*shlex.split(arguments)), code, sentence)


@pytest.mark.parametrize(("arguments", "code", "sentence"), IN_FILES, ids=[one[0] for one in IN_FILES])
def test_a_mistake_in_a_file_ends_in_one_sentence(leeward, tmp_path, arguments, code, sentence):
    (tmp_path / EMPTY).mkdir()
    folders = {name: a_snapshot(tmp_path / name, **changed) for name, changed in FOLDERS.items() if name in arguments}
    asked = arguments.format(**{EMPTY: tmp_path / EMPTY}, **folders)
    ends_in_one_sentence(leeward(*shlex.split(asked)), code, sentence)


@pytest.mark.parametrize(
    ("cluster", "arguments", "code", "sentence"), LIVE, ids=[f"{one[0]}: {one[1]}" for one in LIVE]
)
def test_a_mistake_about_a_cluster_ends_in_one_sentence(leeward, monkeypatch, cluster, arguments, code, sentence):
    monkeypatch.setattr(wiring, "command_line_ports", lambda *_, **__: CLUSTERS[cluster]().ports)
    ends_in_one_sentence(leeward(*shlex.split(arguments), "--cluster", CLUSTER), code, sentence)
