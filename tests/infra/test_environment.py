"""The functions' environment stays below Lambda's limit for every accepted setting."""

import json
from pathlib import Path

import pytest

from infra.environment import LARGEST, bytes_of
from infra.settings import LONGEST_NAMES, MOST_CLUSTERS
from leeward.errors import InvalidInputError
from tests.infra.conftest import NODES, synthesize

TOPIC = "arn:aws:sns:us-east-1:111122223333:" + "t" * 38


def settings(folder, topics, **home):
    """As many clusters with as long names as are accepted, each with a webhook."""
    names = [f"{index}{'n' * (LONGEST_NAMES // MOST_CLUSTERS - 1)}" for index in range(MOST_CLUSTERS)]
    clusters = []
    for name in names:
        path = folder / f"{name}.yaml"
        webhook = {"webhook": {"url": "https://hooks.example.com/T1", "format": "slack"}}
        head = {"apiVersion": "leeward.dev/v1", "kind": "ClusterSettings", "metadata": {"name": name}, "spec": webhook}
        path.write_text(json.dumps(head))
        clusters.append({"name": name, "policies": [str(path)], **home})
    senders = {"topics": [f"{TOPIC}{number}" for number in range(topics)]}
    return {"clusters": clusters, "nodeRoles": [NODES], "senders": senders, "deployment": "d" * 15}


def measured(template, function):
    """Bytes of a function's variables, filled in."""
    variables = template.filled(function["Environment"]["Variables"])
    return len(json.dumps(variables, separators=(",", ":")).encode())


@pytest.mark.parametrize("home", [{}, {"account": "111122223333", "region": "us-east-1"}])
def test_the_largest_settings_without_a_topic_are_accepted_and_fit(tmp_path, home):
    stack = "ddddddddddddddd-Leeward"
    made = synthesize(tmp_path / "out", stack=stack, leeward=settings(tmp_path, 0, **home))
    raw = [each["Properties"] for each in made.raw["Resources"].values() if each["Type"] == "AWS::Lambda::Function"]
    assert len(raw) == 9
    largest = max(raw, key=lambda function: measured(made, function))["Environment"]["Variables"]
    assert "CLUSTERS" in largest
    for function in raw:
        estimate = bytes_of(function["Environment"]["Variables"])
        assert measured(made, function) <= estimate <= LARGEST


def test_topics_that_do_not_fit_are_one_sentence_that_names_the_setting(tmp_path):
    said = r"settings: leeward\.senders\.topics: found 60 in an environment of .* bytes for .*, expected at most 4,096"
    with pytest.raises(InvalidInputError, match=said):
        synthesize(tmp_path / "out", leeward=settings(tmp_path, 60))
    assert not (Path(tmp_path) / "out" / "Leeward.template.json").exists()
