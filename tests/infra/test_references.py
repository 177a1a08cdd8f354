"""No text of policies or settings becomes a reference that CloudFormation resolves with the deployer's rights."""

import contextlib
import json
import re
from copy import deepcopy

import pytest

from infra.settings import read_settings
from infra.webhooks import secret_reference
from leeward.errors import InvalidInputError
from leeward.policy.document import Webhook
from tests.infra.conftest import EVERYTHING, ROOT, TOPIC, synthesize

HOSTILE = "{{resolve:secretsmanager:prod-db:SecretString:password}}"
SECRET = "arn:aws:secretsmanager:us-east-1:111122223333:secret:leeward-webhook-AbCdEf"
REFERENCE = re.compile(r"\{\{resolve:.*?\}\}")
API = "leeward.dev/v1"
POLICY = {
    "apiVersion": API,
    "kind": "NodePolicy",
    "metadata": {"name": "web"},
    "spec": {
        "selector": {"groups": ["web-*"], "tags": {"team": "shop"}},
        "interruption": {"hooks": ["mine"]},
        "requirements": [{"key": "team.example.com/kind", "operator": "In", "values": ["large"]}],
        "node": {
            "labels": {"team": "shop"},
            "annotations": {"team.example.com/text": "free text"},
            "taints": [{"key": "team", "effect": "NoSchedule", "value": "shop"}],
            "startupTaints": [{"key": "starting", "effect": "NoSchedule", "value": "yes"}],
        },
        "update": {"alarms": ["errors"], "windows": [{"schedule": "0 3 * * *", "duration": "1h"}]},
        "disruption": {"alarms": ["errors"], "budgets": [{"nodes": "1", "zone": "us-east-1a"}]},
        "repair": {"conditions": [{"type": "Broken", "status": "True", "reason": "Disk", "after": "10m"}]},
        "placement": {"cni": {"WARM_IP_TARGET": "1"}},
    },
}
CLUSTER = {
    "apiVersion": API,
    "kind": "ClusterSettings",
    "metadata": {"name": "blue"},
    "spec": {
        "freeze": [{"schedule": "0 0 24 12 *", "duration": "48h", "timeZone": "Europe/Berlin"}],
        "webhook": {"url": "https://hooks.example.com/T1", "secretArn": SECRET, "header": "Authorization"},
    },
}
SETTINGS = {
    **EVERYTHING,
    "deployment": "trial",
    "clusters": [EVERYTHING["clusters"][0] | {"policies": ["{{resolve:ssm:x}}*.yaml"]}],
}


def places(value, path=()):
    """Yield the path of each text in it; a key of a mapping has a last step of its own."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield (*path, "key", key)
            yield from places(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from places(item, (*path, index))
    elif isinstance(value, str):
        yield path


def changed(document, path, text):
    """Return the document with the text at one place."""
    copy = deepcopy(document)
    inner = copy
    for step in path[: -2 if "key" in path[-2:-1] else -1]:
        inner = inner[step]
    if "key" in path[-2:-1]:
        inner[text] = inner.pop(path[-1])
    else:
        inner[path[-1]] = text
    return copy


def accepted(read, document):
    """Return the document with the hostile text in each place that takes it, as a whole, or after what stood there."""
    for path in places(document):
        for text in (HOSTILE, f"{path[-1]}{HOSTILE}", f"https://x.example/{HOSTILE}", f"{TOPIC}{HOSTILE}"):
            with contextlib.suppress(InvalidInputError, KeyError):  # refused, or below a key that is another one now
                candidate = changed(document, path, text)
                read(candidate)
                document = candidate
    return document


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A deployment each of whose free texts tries it."""
    folder = tmp_path_factory.mktemp("hostile")

    def written(*documents):
        (folder / "{{resolve:ssm:x}}.yaml").write_text("\n---\n".join(json.dumps(document) for document in documents))

    def read(settings):
        return read_settings({"leeward": settings}.get, folder, {})

    def read_policy(policy):
        written(policy, CLUSTER)
        return read(settings)

    def read_cluster(cluster):
        written(POLICY, cluster)
        return read(settings)

    settings = SETTINGS | {"clusters": [SETTINGS["clusters"][0] | {"policies": ["*.yaml"]}]}
    policy, cluster = accepted(read_policy, POLICY), accepted(read_cluster, CLUSTER)
    written(policy, cluster)
    taken = accepted(read, settings)
    taken["clusters"][0]["policies"] = [str(folder / "*.yaml")]
    return synthesize(folder / "out", stack="trial-Leeward", leeward=taken)


def test_every_reference_of_a_template_is_the_secret_of_a_webhook(hostile):
    secret = secret_reference(Webhook(url="https://hooks.example.com/T1", secret_arn=SECRET))
    assert set(REFERENCE.findall(json.dumps(hostile.raw))) == {secret}
    assert json.dumps(hostile.raw).count("{{") == 1


def test_no_template_substitutes_names_in_texts(everything):
    """`${NAME}` in a text is one where Fn::Sub is used."""
    assert "Fn::Sub" not in json.dumps(everything.raw)


@pytest.mark.parametrize(
    ("document", "path"),
    [
        (POLICY, ("spec", "selector", "groups", 0)),
        (POLICY, ("spec", "node", "annotations", "team.example.com/text")),
        (POLICY, ("spec", "node", "annotations", "key", "team.example.com/text")),
        (CLUSTER, ("spec", "webhook", "url")),
    ],
)
def test_the_refusal_names_file_place_text_and_expectation(tmp_path, document, path):
    file = tmp_path / "p.yaml"
    file.write_text(json.dumps(changed(document, path, HOSTILE)))
    settings = {"clusters": [{"name": "blue", "policies": [str(file)]}], "nodeRoles": EVERYTHING["nodeRoles"]}
    with pytest.raises(InvalidInputError, match=r"p\.yaml: spec\..*: found .*resolve:.*, expected ") as refusal:
        read_settings({"leeward": settings}.get, ROOT, {})
    assert len(str(refusal.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("key", "text"), [("runbooks", f"https://x.example/{HOSTILE}"), ("alarmTopic", TOPIC + HOSTILE)]
)
def test_a_setting_that_is_a_reference_is_refused(key, text):
    with pytest.raises(InvalidInputError, match=rf"context: leeward\.{key}: found .*, expected "):
        read_settings({"leeward": {**EVERYTHING, key: text}}.get, ROOT, {})
