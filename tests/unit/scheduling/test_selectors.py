"""Gt and Lt of a node selector compare what strconv.ParseInt takes, as apimachinery's labels.Requirement."""

import pytest

from leeward.model.raw_fields import GREATEST, LEAST, parse_int
from leeward.scheduling.selectors import LabelRequirement, Operator


def holds(operator, label, *values):
    return LabelRequirement(key="gen", operator=operator, values=values).matches({"gen": label})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("+5", 5),
        ("-5", -5),
        ("-0", 0),
        ("007", 7),
        ("0" * 100 + "1", 1),
        (str(GREATEST), GREATEST),
        (str(LEAST), LEAST),
    ],
)
def test_a_sign_and_ascii_digits_within_64_bits_are_a_number(text, value):
    assert parse_int(text) == value
    assert holds(Operator.GT, text, str(value - 1)) == (value > LEAST)


NO_NUMBERS = [
    "", "1_0", " 5", "5 ", "5\n", "٣", "\uff11", "²", "5.0", "0x5", "1e3", "+", "-", "--5", "9223372036854775808",
    "-9223372036854775809", "9" * 5000, "x",
]  # fmt: skip


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_any_other_text_is_none_and_compares_with_nothing(text):
    assert parse_int(text) is None
    assert not holds(Operator.GT, text, "-100")
    assert not holds(Operator.LT, text, "100")
    assert not holds(Operator.GT, "5", text)
    assert not holds(Operator.LT, "5", text)


def test_they_take_one_value_and_a_label_that_is_there():
    assert not holds(Operator.GT, "5", "1", "2")
    assert not holds(Operator.GT, "5")
    assert not LabelRequirement(key="gen", operator=Operator.LT, values=("5",)).matches({})
