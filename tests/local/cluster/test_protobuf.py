"""Bodies in protobuf: what kubectl sends, and what is refused instead of being dropped."""

import pytest

from local.cluster import protobuf
from local.cluster.errors import ApiError


def field(number: int, value: bytes | str | int) -> bytes:
    if isinstance(value, int):
        return bytes([number << 3, value])
    data = value.encode() if isinstance(value, str) else value
    return bytes([number << 3 | 2, len(data)]) + data


def wrapped(version: str, kind: str, message: bytes) -> bytes:
    return protobuf.MAGIC + field(1, field(1, version) + field(2, kind)) + field(2, message)


def test_maps_are_read_and_empty_texts_and_times_are_left_out():
    metadata = field(1, "settings") + field(3, "") + field(7, 0) + field(8, b"")
    data = field(2, field(1, "colour") + field(2, "red"))
    body = wrapped("v1", "ConfigMap", field(1, metadata) + data)
    assert protobuf.decoded(body) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "settings"},
        "data": {"colour": "red"},
    }


@pytest.mark.parametrize(
    ("value", "read"), [(field(1, 0) + field(2, 3), 3), (field(1, 1) + field(2, 0) + field(3, "50%"), "50%")]
)
def test_an_int_or_string_is_either(value, read):
    body = wrapped("policy/v1", "PodDisruptionBudget", field(2, field(3, value)))
    assert protobuf.decoded(body)["spec"] == {"maxUnavailable": read}


def test_zero_replicas_are_zero():
    body = wrapped("apps/v1", "Deployment", field(2, field(1, 0)))
    assert protobuf.decoded(body)["spec"] == {"replicas": 0}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (wrapped("v1", "Binding", b""), 415),
        (wrapped("v1", "ConfigMap", field(9, "more")), 415),
        (protobuf.MAGIC + b"\x0a", 400),
        (protobuf.MAGIC + b"\x0d\x00\x00\x00\x00", 400),
        (wrapped("v1", "ConfigMap", field(2, field(1, "colour") + field(2, "red")))[:-1], 400),
        (wrapped("v1", "ConfigMap", field(1, field(1, b"\xff"))), 400),
        (wrapped("v1", "ConfigMap", field(1, 1)), 400),
    ],
)
def test_what_is_not_known_is_refused(body, code):
    with pytest.raises(ApiError) as refused:
        protobuf.decoded(body)
    assert refused.value.code == code
