"""`python -m infra.quota`, which `make deploy` asks first: the message names the quota and how to raise it."""

import json

import pytest
from botocore.session import Session
from botocore.stub import Stubber

from infra import quota, settings
from infra.interruption import reserved_concurrency
from infra.names import Names
from leeward.doctor.expected import RESERVED
from tests.infra.conftest import NODES

CLUSTERS = [{"name": "blue", "policies": [str(quota.ROOT / "policies/*.yaml")]}]


@pytest.fixture
def account(tmp_path):
    """Asked with these limits; `held`: what each of the two functions has reserved, None where it is not there."""

    def ask(limit, unreserved, *, held=None, **given):
        raw = {"clusters": CLUSTERS, "nodeRoles": [NODES], **given}
        (tmp_path / "cdk.json").write_text(json.dumps({"context": {"leeward": raw}}))
        client = Session().create_client(
            "lambda", region_name="us-east-1", aws_access_key_id="id", aws_secret_access_key="key"
        )
        with Stubber(client) as stub:
            limits = {"ConcurrentExecutions": limit, "UnreservedConcurrentExecutions": unreserved}
            stub.add_response("get_account_settings", {"AccountLimit": limits}, {})
            for name in map(Names().function, quota.RESERVING):
                if held is None:
                    stub.add_client_error("get_function_concurrency", "ResourceNotFoundException")
                else:
                    answer = {"ReservedConcurrentExecutions": held}
                    stub.add_response("get_function_concurrency", answer, {"FunctionName": name})
            return quota.main(tmp_path, client)

    return ask


def test_the_starter_quota_is_reported_before_a_deployment_fails_on_it(account, capsys):
    assert account(10, 10) == 1
    reported = capsys.readouterr().err
    assert "'Concurrent executions' of Lambda (L-B99A9384) is 10" in reported
    assert f"{100 + RESERVED} are needed" in reported
    assert "request-service-quota-increase --service-code lambda --quota-code L-B99A9384" in reported
    assert "concurrency.drain to 0" in reported


@pytest.mark.parametrize(
    ("limit", "unreserved", "code"),
    [(99 + RESERVED, 99 + RESERVED, 1), (100 + RESERVED, 100 + RESERVED, 0), (1000, 120, 1), (1000, 900, 0)],
)
def test_a_hundred_stay_unreserved(account, limit, unreserved, code):
    assert account(limit, unreserved) == code


def test_what_an_earlier_deployment_holds_is_not_asked_for_again(account):
    assert account(100 + RESERVED, 100, held=RESERVED // 2) == 0


def test_nothing_is_asked_where_nothing_is_reserved(account):
    assert account(10, 10, concurrency={"interruption": 0, "drain": 0}) == 0


def test_a_quota_that_may_not_be_read_holds_no_deployment_up(tmp_path, capsys):
    (tmp_path / "cdk.json").write_text(
        json.dumps({"context": {"leeward": {"clusters": CLUSTERS, "nodeRoles": [NODES]}}})
    )
    client = Session().create_client(
        "lambda", region_name="us-east-1", aws_access_key_id="id", aws_secret_access_key="k"
    )
    with Stubber(client) as stub:
        stub.add_client_error("get_account_settings", "AccessDeniedException", "not authorized")
        assert quota.main(tmp_path, client) == 0
    assert "was not looked at" in capsys.readouterr().err


def test_doctor_counts_with_the_defaults_of_the_settings():
    defaults = settings.Settings(clusters=(), node_roles=(NODES,))
    assert reserved_concurrency(defaults) + defaults.drain_concurrency == RESERVED
