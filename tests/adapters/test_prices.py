"""The price list and the spot price history: what is asked, and which of the answers is a price."""

import json
from datetime import UTC, datetime

import pytest
from botocore.stub import ANY, Stubber

from leeward.adapters.aws.clients import AwsClients
from leeward.adapters.aws.prices import AwsPriceList, price_of
from leeward.errors import AccessDeniedError, ObjectGoneError

NOW = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)


def a_product(*prices, currency="USD"):
    dimensions = {str(n): {"unit": "Hrs", "pricePerUnit": {currency: price}} for n, price in enumerate(prices)}
    return {"product": {}, "terms": {"OnDemand": {"offer": {"priceDimensions": dimensions}}}}


@pytest.fixture
def pricing(aws):
    """The price list answers in one Region of the partition, wherever the clusters are."""
    with Stubber(aws.clients.get("pricing", region="us-east-1")) as stub:
        yield stub
        stub.assert_no_pending_responses()


def page(*products, token=None):
    answer = {"FormatVersion": "aws_v1", "PriceList": [json.dumps(product) for product in products]}
    return answer | ({"NextToken": token} if token else {})


def test_plain_linux_of_shared_tenancy_in_the_home_region_is_asked_for(aws, pricing):
    wanted = {
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
        "licenseModel": "No License required",
        "instanceType": "m5.large",
        "regionCode": "us-east-1",
    }
    filters = [{"Type": "TERM_MATCH", "Field": key, "Value": value} for key, value in wanted.items()]
    pricing.add_response(
        "get_products", page(a_product("0.0960000000")), {"ServiceCode": "AmazonEC2", "Filters": filters}
    )
    assert AwsPriceList(aws.clients).on_demand(["m5.large", "m5.large"]) == {"m5.large": 0.096}


def test_every_page_is_read_and_products_that_cost_nothing_are_no_price(aws, pricing):
    first = {"ServiceCode": "AmazonEC2", "Filters": ANY}
    pricing.add_response("get_products", page(a_product("0.0000000000"), token="more"), first)
    pricing.add_response("get_products", page(a_product("0.192")), first | {"NextToken": "more"})
    assert AwsPriceList(aws.clients).on_demand(["m5.xlarge"]) == {"m5.xlarge": 0.192}


def test_a_type_without_a_price_is_absent(aws, pricing):
    pricing.add_response("get_products", page(), {"ServiceCode": "AmazonEC2", "Filters": ANY})
    assert AwsPriceList(aws.clients).on_demand(["m99.large"]) == {}


def test_a_missing_permission_names_the_call(aws, pricing):
    pricing.add_client_error("get_products", "AccessDeniedException", "no")
    with pytest.raises(AccessDeniedError, match=r"pricing:GetProducts on m5\.large"):
        AwsPriceList(aws.clients).on_demand(["m5.large"])


def test_a_partition_without_a_price_list_says_so(aws_environment):
    with pytest.raises(ObjectGoneError, match="partition aws-us-gov has no price list"):
        AwsPriceList(AwsClients("us-gov-west-1")).on_demand(["m5.large"])


@pytest.mark.parametrize(
    ("product", "price"),
    [
        (a_product("0.5"), 0.5),
        (a_product("0", "0.25"), 0.25),
        (a_product("0.5", currency="CNY"), None),
        ({"terms": {}}, None),
        ({}, None),
    ],
)
def test_the_price_of_a_product_is_its_first_hour_that_costs_something(product, price):
    assert price_of(product) == price


def test_spot_prices_in_force_come_by_type_and_zone_over_all_pages(aws):
    asked = {
        "InstanceTypes": ["c5.large", "m5.large"],
        "ProductDescriptions": ["Linux/UNIX"],
        "StartTime": NOW,
        "Filters": [{"Name": "availability-zone", "Values": ["us-east-1a", "us-east-1b"]}],
    }

    def entry(kind, zone, price):
        return {"InstanceType": kind, "AvailabilityZone": zone, "SpotPrice": price, "Timestamp": NOW}

    first = {"SpotPriceHistory": [entry("m5.large", "us-east-1a", "0.0312")], "NextToken": "more"}
    aws.expect("ec2", "describe_spot_price_history", asked, first)
    second = {"SpotPriceHistory": [entry("m5.large", "us-east-1b", "0.04"), entry("c5.large", "us-east-1a", "0.03")]}
    aws.expect("ec2", "describe_spot_price_history", asked | {"NextToken": "more"}, second)
    found = AwsPriceList(aws.clients).spot(["m5.large", "c5.large"], ["us-east-1b", "us-east-1a"], NOW)
    assert found == {"m5.large": {"us-east-1a": 0.0312, "us-east-1b": 0.04}, "c5.large": {"us-east-1a": 0.03}}


def test_without_zones_no_price_of_every_zone_is_asked_for(aws):
    assert AwsPriceList(aws.clients).spot(["m5.large"], [], NOW) == {}
