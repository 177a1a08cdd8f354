"""`ports.compute.PriceList`: on demand from the AWS Price List API, spot from EC2's price history.

The Price List API exists in few Regions, for all Regions of its partition; some partitions have none."""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from leeward.adapters.aws.clients import AwsClients, chunks, pages
from leeward.adapters.aws.errors import aws_call
from leeward.errors import ObjectGoneError
from leeward.model.counts import count_of

REGION_OF_PARTITION = {"aws": "us-east-1", "aws-cn": "cn-northwest-1"}
CURRENCY_OF_PARTITION = {"aws": "USD", "aws-cn": "CNY"}
TYPES_PER_CALL = 100
PRODUCT = "Linux/UNIX"  # EC2's words for a spot price of Linux in a VPC
_PLAIN_LINUX = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
    "licenseModel": "No License required",
}


class AwsPriceList:
    """Prices of the home Region."""

    def __init__(self, clients: AwsClients) -> None:
        self._clients = clients

    def on_demand(self, types: Iterable[str]) -> Mapping[str, float]:
        """Return the price of an hour of shared tenancy with plain Linux, by type; one GetProducts for each type,
        paged.

        Raises ObjectGoneError in a partition without a price list.
        """
        partition = self._clients.partition
        if partition not in REGION_OF_PARTITION:
            raise ObjectGoneError(f"pricing:GetProducts: partition {partition} has no price list")
        client = self._clients.get("pricing", region=REGION_OF_PARTITION[partition])
        found: dict[str, float] = {}
        for name in sorted(set(types)):
            wanted = {**_PLAIN_LINUX, "instanceType": name, "regionCode": self._clients.region}
            filters = [{"Type": "TERM_MATCH", "Field": key, "Value": value} for key, value in wanted.items()]
            with aws_call("pricing:GetProducts", name):
                for page in pages(client, "get_products", ServiceCode="AmazonEC2", Filters=filters):
                    prices = [price_of(json.loads(raw), CURRENCY_OF_PARTITION[partition]) for raw in page["PriceList"]]
                    found.update((name, price) for price in prices if price)
        return found

    def spot(self, types: Iterable[str], zones: Iterable[str], now: datetime) -> Mapping[str, Mapping[str, float]]:
        """Return the price of an hour now, by type and zone: a history that starts now holds the price in force."""
        found: dict[str, dict[str, float]] = {}
        wanted = sorted(set(zones))
        for chunk in chunks(sorted(set(types)) if wanted else (), TYPES_PER_CALL):
            arguments = {
                "InstanceTypes": chunk,
                "ProductDescriptions": [PRODUCT],
                "StartTime": now,
                "Filters": [{"Name": "availability-zone", "Values": wanted}],
            }
            with aws_call("ec2:DescribeSpotPriceHistory", f"{count_of(len(chunk), 'type')} from {chunk[0]}"):
                for page in pages(self._clients.get("ec2"), "describe_spot_price_history", **arguments):
                    for raw in sorted(page.get("SpotPriceHistory", ()), key=lambda one: str(one.get("Timestamp", ""))):
                        found.setdefault(raw["InstanceType"], {})[raw["AvailabilityZone"]] = float(raw["SpotPrice"])
        return found


def price_of(product: Mapping[str, Any], currency: str = "USD") -> float | None:
    """Return an hour's price of the product, one element of the price list; None where it has none, or only 0."""
    offers = (product.get("terms") or {}).get("OnDemand") or {}
    for offer in offers.values():
        for dimension in offer.get("priceDimensions", {}).values():
            price = float(dimension.get("pricePerUnit", {}).get(currency) or 0)
            if price > 0:
                return price
    return None
