"""Prices that a test has set are what the real adapter reads."""

from datetime import UTC, datetime
from urllib.error import HTTPError

import pytest

from leeward.adapters.aws.prices import AwsPriceList

PRICES = {"on-demand": {"m5.large": 0.096, "m5.xlarge": 0.192}, "spot": {"m5.large": {"us-east-1a": 0.0412}}}


@pytest.fixture
def price_list(aws):
    class Clients:
        partition, region = "aws", "us-east-1"

        def get(self, service, region=None):
            return aws.client(service)

    aws.control("PUT", "prices", PRICES)
    yield AwsPriceList(Clients())
    aws.control("PUT", "prices", {})


def test_an_hour_on_demand_costs_what_was_set_and_other_types_have_no_price(price_list):
    assert price_list.on_demand(["m5.large", "m5.xlarge", "c5.large"]) == PRICES["on-demand"]


def test_spot_prices_are_reported_by_type_and_zone(price_list):
    now = datetime.now(UTC)
    assert price_list.spot(["m5.large", "m5.xlarge"], ["us-east-1a", "us-east-1b"], now) == PRICES["spot"]
    assert price_list.spot(["m5.large"], ["us-east-1b"], now) == {}


def test_prices_of_another_kind_are_refused_by_name(aws):
    with pytest.raises(HTTPError) as refused:
        aws.control("PUT", "prices", {"reserved": {}})
    assert refused.value.code == 400
    assert "not reserved" in refused.value.read().decode()
