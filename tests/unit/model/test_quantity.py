"""Quantities as Kubernetes' resource.Quantity reads them; the tables are the cases of its own tests (TestQuantityParse,
TestQuantityRoundUp), as values."""

from fractions import Fraction

import pytest

from leeward.errors import InvalidInputError
from leeward.model.quantity import CPU, LARGEST, MEMORY, amount, written

READ = {
    "0": 0, "0n": 0, "0u": 0, "0m": 0, "0Ki": 0, "0k": 0, "0Mi": 0, "0Ti": 0, "1": 1, "1Ki": 1024, "8Ki": 8192,
    "7Mi": 7 << 20, "6Gi": 6 << 30, "5Ti": 5 << 40, "4Pi": 4 << 50, "3Ei": 3 << 60, "100Ti": 100 << 40,
    "8k": 8000, "50k": 50_000, "7M": 7 * 10**6, "6G": 6 * 10**9, "5T": 5 * 10**12, "2P": 2 * 10**15, "1E": 10**18,
    "1e3": 1000, "1E6": 10**6, "1e9": 10**9, "1E18": 10**18, "1e14": 10**14, "100.035k": 100_035, "0.5e0": 1,
    "10.035M": 10_035_000, "1.2e3": 1200, "1.3E+6": 1_300_000, "1.40e9": 1_400_000_000, "1.7E18": 17 * 10**17,
    "8.1k": 8100, "7.123456M": 7_123_456, "6.987654321G": 6_987_654_321, "1.01E": 101 * 10**16, "2.5P": 25 * 10**14,
    "0.5Mi": 1 << 19, "0.05Gi": 53_687_092, "0.025Ti": 27_487_790_695, "100.035Ki": 102_436,
    "9Ei": LARGEST, "9223372036854775807Ki": LARGEST, "12E": LARGEST, "8Ei": LARGEST,
    "1.": 1, "1.G": 10**9, ".001": 1, ".0001k": 1, "0.000000000001Ki": 1, "9.01": 10, "00012": 12,
}  # fmt: skip
THOUSANDTHS = {
    "5n": 1, "4u": 1, "3m": 3, "9": 9000, "1E-3": 1, "0.001": 1, "0.0005k": 500, "0.05": 50, "0.50000": 500,
    "0.5e-2": 5, "9.01": 9010, "3.001n": 1, "0.0000000001": 1, "0.00000012345": 1, "100m": 100, "1.5": 1500,
}  # fmt: skip
REFUSED = [
    "", "1.1.M", "1+1.0M", "0.1mi", "0.1am", "aoeu", ".5i", "1i", "-3.01i", "-3.01e-", " 1", "1 ", "1\n", "\t1",
    "1 Ki", "٣", "\uff11", "1_000", "1e", "1e+", "1e1.5", "1e3k", "1E3Ki", "1e+-3", "1..5", "1-", "++1", "1,5", "0x10",
    "1K", "1ki", "1KiB", "1Zi", "1µ", "Inf", "NaN", "\u22121", "1e9223372036854775808", "0e-9223372036854775809", ".",
    "+", "Ki", "-.", "1e٣", "1\x00", "True", "None",
]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), READ.items())
def test_a_quantity_is_read_as_kubernetes_reads_it(text, value):
    assert amount(MEMORY, text) == amount(MEMORY, f"+{text}") == value
    assert amount(MEMORY, f"-{text}") == -value


@pytest.mark.parametrize(("text", "value"), THOUSANDTHS.items())
def test_cpu_is_counted_in_thousandths_rounded_away_from_zero(text, value):
    assert (amount(CPU, text), amount(CPU, f"-{text}")) == (value, -value)


@pytest.mark.parametrize("text", REFUSED)
def test_any_other_text_is_refused(text):
    with pytest.raises(InvalidInputError, match=r"expected a quantity such as 500m, 2 or 1\.5Gi"):
        amount(MEMORY, text)


@pytest.mark.parametrize(
    ("text", "value"),
    [("1e0005", 10**5), ("1e" + "0" * 60 + "3", 1000), ("1E+0", 1), ("1e9223372036854775807", LARGEST)],
)
def test_an_exponent_may_have_many_digits(text, value):
    assert amount(MEMORY, text) == value


@pytest.mark.parametrize(("number", "value"), [(1.5, 1500), (2, 2000), (1e3, 10**6), (1e-7, 1), (1e22, LARGEST)])
def test_a_number_of_json_is_read_as_its_text(number, value):
    assert amount(CPU, number) == value


@pytest.mark.parametrize("number", [float("inf"), float("nan"), True, None, [1], {}])
def test_what_is_no_number_of_json_is_refused(number):
    with pytest.raises(InvalidInputError):
        amount(CPU, number)


@pytest.mark.parametrize("zeros", [20, 60, 149, 150, 151, 4400, 100_000])
def test_a_number_of_any_length_is_exact_and_not_slow(zeros):
    assert amount(MEMORY, f"1.{'0' * zeros}1") == 2
    assert amount(MEMORY, f"1.{'0' * zeros}") == 1
    assert amount(MEMORY, f"{'0' * zeros}7") == 7
    assert amount(MEMORY, f"1{'0' * zeros}") == LARGEST
    assert amount(MEMORY, f"1{'0' * zeros}e-{zeros}") == 1
    assert amount(MEMORY, f"0.{'0' * zeros}1Ki") == 1
    assert amount(MEMORY, "9" * zeros) == LARGEST


def test_an_offer_is_rounded_down():
    assert amount(MEMORY, "1.9", down=True) == 1
    assert amount(CPU, "1.9999", down=True) == 1999
    assert amount(CPU, "0.9999999999", down=True) == 1000  # billionths are all that Kubernetes keeps


@pytest.mark.parametrize("resource", [CPU, MEMORY, "nvidia.com/gpu"])
def test_an_amount_is_written_as_it_is_read(resource):
    for value in (0, 1, 999, 1000, 1930, 1024, 3 << 30, (3 << 30) + 1, 5 << 40, LARGEST):
        assert amount(resource, written(resource, value)) == value


@pytest.mark.parametrize(
    ("text", "exact"),
    [
        ("0.333Gi", Fraction("0.333") * 2**30),
        ("1.000000001Mi", Fraction("1.000000001") * 2**20),
        ("12345678901234567890n", Fraction(12345678901234567890, 10**9)),
        ("1.00000000000000000000000000000001", Fraction(10**32 + 1, 10**32)),
    ],
)
def test_a_fraction_is_rounded_up_from_its_exact_value(text, exact):
    assert amount(MEMORY, text) == -(-exact // 1)
