"""Methods of dataclasses that are compiled with the asset."""

import dataclasses
from dataclasses import dataclass
from importlib.util import MAGIC_NUMBER

import pytest

from leeward import generated_code


@pytest.fixture(autouse=True)
def _dataclasses_stay_as_they_were(monkeypatch):
    monkeypatch.setattr(dataclasses, "exec", exec, raising=False)


def a_class():
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Point:
        x: int
        y: int = 2

    return Point


def recorded(file):
    found = generated_code.record()
    a_class()
    generated_code.write(found, file)
    return found


@pytest.fixture
def loads(monkeypatch):
    """Counts what is taken from the file."""
    taken, load = [], generated_code.marshal.loads

    def counted(raw):
        taken.append(raw)
        return load(raw)

    monkeypatch.setattr(generated_code.marshal, "loads", counted)
    return taken


def test_a_class_is_the_same_from_the_file(tmp_path, loads):
    found = recorded(tmp_path / "code")
    generated_code.use(tmp_path / "code")
    point = a_class()(x=1)
    assert loads[1:] == list(found.values())
    assert repr(point).endswith("Point(x=1, y=2)")
    assert point == type(point)(x=1)
    assert hash(point) == hash((1, 2))
    with pytest.raises(dataclasses.FrozenInstanceError):
        point.x = 3
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument"):
        type(point)()


def test_a_class_that_is_not_in_the_file_is_compiled(tmp_path, loads):
    recorded(tmp_path / "code")
    generated_code.use(tmp_path / "code")

    @dataclass
    class Other:
        z: int

    assert Other(4).z == 4
    assert len(loads) == 1


def test_a_file_of_another_python_and_a_missing_one_change_nothing(tmp_path, loads):
    other = bytes(reversed(MAGIC_NUMBER))
    (tmp_path / "code").write_bytes(other + b"anything")
    for name in ("code", "missing"):
        generated_code.use(tmp_path / name)
        assert a_class()(x=1).y == 2
    assert loads == []
    assert dataclasses.exec is exec


def test_the_same_classes_make_the_same_file(tmp_path):
    for name in ("first", "second"):
        recorded(tmp_path / name)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
