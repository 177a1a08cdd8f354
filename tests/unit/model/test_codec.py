"""Round trips, the layout of items, and what another version may have written."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

import pytest

from leeward.adapters.aws.table import from_wire, to_wire
from leeward.errors import NewerRecordError
from leeward.model.codec import APART, decode, decode_item, encode, named

NOW, TEXT = datetime(2026, 3, 2, 10, 0, tzinfo=UTC), "2026-03-02T10:00:00Z"


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, kw_only=True)
class Inner:
    names: tuple[str, ...] = ()
    until: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Everything:  # that a record may hold
    moment: datetime
    inner: Inner
    pair: tuple[str, int]
    required: str | None
    colours: tuple[Colour, ...] = ()
    price: float = 0.0
    span: timedelta = timedelta(minutes=1)
    zones: frozenset[str] = frozenset()
    lines: list[Inner] = field(default_factory=list)
    counts_by_zone: Mapping[str, int] = field(default_factory=dict)
    inner_by_name: Mapping[str, Inner] = field(default_factory=dict)
    chosen: Inner | None = None
    ready: bool = True
    raw: Mapping[str, Any] = field(default_factory=dict)
    other_name: int = field(metadata=named("short"), default=0)
    apart: int = field(metadata=APART, default=0)


FEW = Everything(moment=NOW, inner=Inner(), pair=("", 0), required=None)
FEW_STORED = {"moment": TEXT, "inner": {}, "pair": ["", 0]}
INNER, INNER_STORED = Inner(names=("b", "a"), until=NOW), {"names": ["b", "a"], "until": TEXT}
FULL = Everything(
    **{"moment": NOW, "inner": INNER, "pair": ("a", 1), "required": "", "colours": (Colour.RED, Colour.BLUE)},
    **{"price": 0.25, "span": timedelta(hours=1), "zones": frozenset({"b", "a"}), "lines": [INNER, Inner()]},
    **{"counts_by_zone": {"us-east-1a": 2}, "inner_by_name": {"x": INNER}, "chosen": Inner(), "ready": False},
    **{"raw": {"a": [1]}, "other_name": 3},
)
FULL_STORED = {
    **{"moment": TEXT, "inner": INNER_STORED, "pair": ["a", 1], "required": "", "colours": ["red", "blue"]},
    **{"price": "0.25", "span": 3600, "zones": ["a", "b"], "lines": [INNER_STORED, {}]},
    **{"countsByZone": {"us-east-1a": 2}, "innerByName": {"x": INNER_STORED}, "chosen": {}, "ready": False},
    **{"raw": {"a": [1]}, "short": 3},
}


ENDLESS = (replace(FEW, span=timedelta.max), {**FEW_STORED, "span": -1})


@pytest.mark.parametrize(("value", "stored"), [(FEW, FEW_STORED), (FULL, FULL_STORED), ENDLESS])
def test_every_type_has_its_layout_and_survives_the_table(value, stored):
    assert encode(value) == stored
    assert decode(Everything, from_wire(to_wire(stored))) == value


def test_a_null_stands_for_the_default_and_an_attribute_of_a_newer_version_is_ignored_at_every_depth():
    newer = {**FEW_STORED, "inner": {"until": None, "future": {"a": 1}}, "zones": None, "future": 1}
    assert decode(Everything, newer) == FEW


def test_a_field_that_is_kept_apart_comes_from_the_caller_alone():
    assert encode(replace(FEW, apart=7)) == FEW_STORED
    assert decode(Everything, {**FEW_STORED, "apart": 7}, apart=8).apart == 8


@pytest.mark.parametrize("wrong", [{"moment": "soon"}, {"pair": ["a"]}, {"inner": "a"}, {"moment": None}, {"lines": 7}])
def test_an_item_in_another_shape_is_named_and_waited_for(wrong):
    item = {"pk": "item#a", **FEW_STORED, **wrong}
    with pytest.raises(NewerRecordError, match=r"^item#a: .*another version of Leeward may have written it$"):
        decode_item(item, lambda raw: decode(Everything, raw))


@pytest.mark.parametrize("hint", [bytes, tuple[bytes, ...], Mapping[Colour, str], int | str, int | str | None])
def test_a_type_that_no_item_holds_is_refused(hint):
    with pytest.raises(TypeError, match="no place in an item"):
        decode(dataclass(type("Strange", (), {"__annotations__": {"strange": hint}})), {})
