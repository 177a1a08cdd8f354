"""`spec.webhook` of ClusterSettings: no secret in it but by reference."""

import json

import pytest

from leeward.errors import InvalidPolicyError
from leeward.policy.document import Webhook, WebhookFormat
from leeward.policy.parse import parse_documents
from leeward.policy.write import canonical
from tests.unit.policy.documents import parse, some_settings

URL = "https://hooks.example.com/T1"
SECRET = "arn:aws:secretsmanager:eu-west-1:111122223333:secret:hook-AbCdEf"


def refused(**webhook):
    with pytest.raises(InvalidPolicyError) as refusal:
        parse_documents([("p.yaml", some_settings(webhook=webhook))], cluster="prod")
    return str(refusal.value)


def test_the_secret_is_named_and_has_a_header():
    settings = parse(some_settings(webhook={"url": URL, "secretArn": SECRET})).settings
    assert settings.webhook == Webhook(url=URL, secret_arn=SECRET, secret_version=None, header="Leeward-Secret")
    assert json.loads(canonical(settings))["spec"] == {"webhook": {"url": URL, "secretArn": SECRET}}


@pytest.mark.parametrize(
    "url",
    [
        "https://name:SESAME@hooks.example.com/",
        "https://SESAME@hooks.example.com/",
        "https://hooks.example.com/?token=SESAME",
        "https://hooks.example.com/?channel=1&Access_Token=SESAME",
        "https://hooks.example.com/?api-key=SESAME",
        "https://hooks.example.com/?sig=SESAME",
        "https://hooks.example.com/?password=",
        "https://hooks.example.com/?q=SESAME8a7d6f5a4s3d2f1a0",
    ],
)
def test_a_url_with_a_secret_is_refused_with_the_fix_and_not_repeated(url):
    said = refused(url=url)
    assert "spec.webhook.url: found a " in said
    assert said.endswith("expected no secret in a URL: put it into Secrets Manager and name it in secretArn")
    assert "SESAME" not in said


@pytest.mark.parametrize("query", ["?channel=nodes", "?a=1&b=prod", "?api-version=2026-01-01", "?cluster=blue-1"])
def test_a_query_without_a_secret_is_taken(query):
    assert parse(some_settings(webhook={"url": URL + query})).settings.webhook == Webhook(url=URL + query)


@pytest.mark.parametrize("url", ["http://127.0.0.1:8080/T1", "http://localhost/", "https://hooks.example.com"])
def test_https_is_taken_and_http_of_this_machine_alone(url):
    assert parse(some_settings(webhook={"url": url})).settings.webhook == Webhook(url=url)


@pytest.mark.parametrize(
    ("webhook", "key"),
    [
        ({}, "url"),
        ({"url": "http://hooks.example.com/T1"}, "url"),
        ({"url": "http://localhost.example.com/"}, "url"),
        ({"url": "https:///T1"}, "url"),
        ({"url": f"{URL}/{{{{resolve:ssm:/x}}}}"}, "url"),
        ({"url": f"{URL}#part"}, "url"),
        ({"url": f"{URL}/{'a' * 2048}"}, "url"),
        ({"url": URL, "secretArn": "hook"}, "secretArn"),
        ({"url": URL, "secretArn": SECRET, "secretVersion": "AWSCURRENT"}, "secretVersion"),
        ({"url": URL, "secretArn": SECRET, "header": "Leeward-Event"}, "header"),
        ({"url": URL, "secretArn": SECRET, "header": "no header"}, "header"),
        ({"url": URL, "header": "Authorization"}, "header"),
        ({"url": URL, "secret": "SESAME"}, "secret"),
        ({"url": URL, "format": "discord"}, "format"),
        ({"url": URL, "format": "pagerduty"}, "secretArn"),
        ({"url": URL, "format": "pagerduty", "secretArn": SECRET, "header": "Authorization"}, "header"),
        ({"url": URL, "format": "teams", "secretArn": SECRET, "header": "Authorization"}, "header"),
    ],
)
def test_any_other_mistake_names_its_key(webhook, key):
    assert f"spec.webhook.{key}: found" in refused(**webhook)


@pytest.mark.parametrize("wanted", ["slack", "teams", "pagerduty"])
def test_the_format_is_stored_where_it_is_not_json(wanted):
    settings = parse(some_settings(webhook={"url": URL, "secretArn": SECRET, "format": wanted})).settings
    assert settings.webhook.format is WebhookFormat(wanted)
    assert json.loads(canonical(settings))["spec"]["webhook"]["format"] == wanted
    plain = parse(some_settings(webhook={"url": URL, "format": "json"})).settings
    assert "format" not in json.loads(canonical(plain))["spec"]["webhook"]


def test_a_url_in_place_of_the_mapping_is_refused():
    with pytest.raises(InvalidPolicyError, match=r"spec\.webhook: found .* expected a mapping"):
        parse_documents([("p.yaml", some_settings(webhook=URL))], cluster="prod")
