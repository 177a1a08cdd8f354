"""Prices of instances: the Price List API's answers and EC2's spot prices, as set through the control API.

`PUT prices` takes `{"on-demand": {TYPE: DOLLARS}, "spot": {TYPE: {ZONE: DOLLARS}}}`, dollars an hour. Until then no
product is known, and there is no spot price history: neither of the two emulators knows any.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs
from xml.sax.saxutils import escape

from local.aws.calls import Call
from local.aws.control import BadRequest, Control, Request

Answer = tuple[int, dict[str, str], bytes]
_PRODUCT = "Linux/UNIX"


class Prices:
    """Prices that are safe to use from any thread: they are replaced as a whole."""

    def __init__(self) -> None:
        self._on_demand: Mapping[str, float] = {}
        self._spot: Mapping[str, Mapping[str, float]] = {}

    def install(self, control: Control) -> None:
        """Add the route `PUT prices`."""
        control.add("PUT", "prices", self._put)

    def _put(self, request: Request) -> None:
        unknown = set(request.body) - {"on-demand", "spot"}
        if unknown:
            raise BadRequest(f"prices are on-demand or spot, not {', '.join(sorted(unknown))}")
        self._on_demand = {str(name): float(price) for name, price in request.body.get("on-demand", {}).items()}
        spot = request.body.get("spot", {})
        self._spot = {str(name): {zone: float(one) for zone, one in by.items()} for name, by in spot.items()}

    def answer(self, call: Call, _path: str, body: bytes) -> Answer | None:
        """Answer the two calls that ask for prices; return None for any other."""
        match call.name:
            case "pricing:GetProducts":
                return self._products(json.loads(body))
            case "ec2:DescribeSpotPriceHistory":
                return self._history({key: found[0] for key, found in parse_qs(body.decode()).items()})
            case _:
                return None

    def _products(self, asked: Mapping[str, Any]) -> Answer:
        wanted = {str(one["Field"]): str(one["Value"]) for one in asked.get("Filters", ())}
        price = self._on_demand.get(wanted.get("instanceType", ""))
        found = [json.dumps(_product(wanted, price))] if price is not None else []
        document = json.dumps({"FormatVersion": "aws_v1", "PriceList": found})
        return 200, {"Content-Type": "application/x-amz-json-1.1"}, document.encode()

    def _history(self, asked: Mapping[str, str]) -> Answer:
        types, zones = set(_listed(asked, "InstanceType.")), set(_listed(asked, "Filter.1.Value."))
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        items = "".join(
            f"<item><instanceType>{escape(name)}</instanceType><productDescription>{_PRODUCT}</productDescription>"
            f"<spotPrice>{price:f}</spotPrice><timestamp>{now}</timestamp><availabilityZone>{escape(zone)}"
            "</availabilityZone></item>"
            for name, by_zone in sorted(self._spot.items())
            for zone, price in sorted(by_zone.items())
            if (not types or name in types) and (not zones or zone in zones)
        )
        document = (
            '<DescribeSpotPriceHistoryResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">'
            f"<requestId>local</requestId><spotPriceHistorySet>{items}</spotPriceHistorySet>"
            "</DescribeSpotPriceHistoryResponse>"
        )
        return 200, {"Content-Type": "text/xml"}, document.encode()


def _listed(asked: Mapping[str, str], prefix: str) -> Iterator[str]:
    return (value for key, value in asked.items() if key.startswith(prefix))


def _product(wanted: Mapping[str, str], price: float) -> dict[str, Any]:
    """Return one element of the price list, with the requested attributes."""
    dimension = {"unit": "Hrs", "pricePerUnit": {"USD": f"{price:.10f}"}, "description": "set by the local AWS"}
    offer = {"priceDimensions": {"LOCAL.LOCAL.6YS6EN2CT7": dimension}, "termAttributes": {}}
    return {
        "product": {"productFamily": "Compute Instance", "attributes": dict(wanted), "sku": "LOCAL"},
        "serviceCode": "AmazonEC2",
        "terms": {"OnDemand": {"LOCAL.LOCAL": offer}},
    }
