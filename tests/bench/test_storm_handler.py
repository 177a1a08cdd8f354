"""fn interruption on a storm, with its real clients: what it asks of AWS grows with batches of a hundred messages."""

import pytest

from bench.storm import handled

FEW, MANY = 10, 110  # one batch, and two


@pytest.fixture(scope="module")
def storms():
    return handled(FEW), handled(MANY)


def test_every_node_is_tainted_and_no_message_comes_back(storms):
    assert [(one.tainted, one.failed) for one in storms] == [(FEW, 0), (MANY, 0)]


def test_a_node_costs_its_claim_and_its_start_and_everything_else_is_asked_once_a_batch(storms):
    few, many = storms
    a_batch = few.aws - 2 * FEW
    assert 0 < a_batch <= 5  # instances, groups, the count of a storm, and what is short now
    assert many.aws == 2 * MANY + 2 * a_batch


def test_a_node_costs_its_taint_and_its_event_in_the_cluster(storms):
    few, many = storms
    a_batch = few.kubernetes - 2 * FEW
    assert 0 < a_batch <= 2
    assert many.kubernetes == 2 * MANY + 2 * a_batch


def test_memory_does_not_grow_with_the_storm(storms):
    """Of what is kept of a message and its node; a list of a thousand nodes is read page by page."""
    few, many = storms
    assert many.megabytes - few.megabytes <= 10
