"""How often a message is delivered, and where it ends: partial failures, visibility, redrive."""

import uuid

import pytest

from simulation.aws import queue
from tests.contract.worlds.queues import RECEIVES, LiveQueue, SimulatedQueue


@pytest.fixture(scope="module")
def emulated_queue(local_aws):
    world = LiveQueue(local_aws)
    yield world
    world.close()


@pytest.fixture(params=["the model", pytest.param("the emulator", marks=pytest.mark.local)])
def world(request, monkeypatch):
    if request.param == "the emulator":
        return request.getfixturevalue("emulated_queue")
    monkeypatch.setattr(queue, "RECEIVES", RECEIVES)
    return SimulatedQueue()


def a_body(kind):
    """One that no other test sends."""
    return f"{kind} {uuid.uuid4().hex[:6]}"


def received(world, body):
    """How often it had been received at each of its deliveries."""
    return [receives for found, receives in world.deliveries() if found == body]


def test_a_message_that_is_handled_is_delivered_once(world):
    good, marker = a_body("good"), a_body("once")
    world.send(good, marker)
    world.until(lambda: received(world, marker) == [1, 2])
    assert received(world, good) == [1]
    assert good not in world.dead()


def test_only_the_messages_that_failed_come_back(world):
    bodies = [a_body(kind) for kind in ("good", "once", "good", "bad")]
    world.send(*bodies)
    world.until(lambda: bodies[3] in world.dead())
    assert [received(world, body) for body in bodies] == [[1], [1, 2], [1], [1, 2]]
    assert set(world.dead()) & set(bodies) == {bodies[3]}


def test_a_failed_invocation_brings_its_messages_back_until_they_are_redriven(world):
    crash = a_body("crash")
    world.send(crash)
    world.until(lambda: crash in world.dead())
    assert received(world, crash) == [1, 2]


def test_a_failed_message_with_a_shorter_visibility_comes_back_before_the_others(world):
    later, soon = a_body("late"), a_body("soon")
    world.send(later, soon)
    world.until(lambda: received(world, later) == [1, 2])
    assert received(world, soon) == [1, 2]
    assert world.deliveries().index((soon, 2)) < world.deliveries().index((later, 2))
