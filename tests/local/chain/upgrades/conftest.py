"""A deployed stack of this folder's own, the `leeward` command, and groups that are upgraded with it."""

from collections.abc import Callable

import pytest

from local.stack import LocalStack
from tests.local.chain.conftest import Crew
from tests.local.chain.deployed import command_of_a_user, folder, network, stack, webhook
from tests.local.chain.upgrades.story import Leeward, Story

__all__ = ["folder", "network", "stack", "webhook"]


@pytest.fixture(scope="module")
def leeward(stack: LocalStack) -> Leeward:
    """The command of a person with access to the cluster."""
    return command_of_a_user(stack)


@pytest.fixture(scope="module")
def story(crew: Callable[..., Crew], leeward: Leeward) -> Callable[..., Story]:
    """Make a group of Ready nodes that all carry the label `group`: `story(3, "rolled", maximum=3)`."""

    def build(size: int, name: str, **options: object) -> Story:
        made = Story(team=crew(size, name=name, labelled=True, **options), leeward=leeward)
        made.pin()
        return made

    return build
