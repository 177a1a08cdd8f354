"""How `make test` divides the tests among its workers (pytest-xdist): room by room, elsewhere file by file.

What is started or synthesized once for many tests is so in one worker only, and what mostly waits runs beside what
reckons. Nothing but the time depends on it: without workers the same tests run one after the other."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

# In the order in which they are handed out: the long ones first, so that no worker ends with one of them.
ROOMS = {
    # A stack is deployed for each of the three. As a whole: the last of it looks at what the others have called.
    "nodes on a deployed stack": ("tests/local/chain/endings/",),
    "groups on a deployed stack": ("tests/local/chain/groups/",),
    "upgrades on a deployed stack": ("tests/local/chain/upgrades/",),
    # Each of these deploys one of its own, and its tests follow each other.
    "the disruption story": ("tests/local/chain/scenarios/test_disruption_story.py",),
    "disruption choices": ("tests/local/chain/scenarios/test_disruption_choices.py",),
    "the account test": ("tests/local/test_account_test.py",),
    "the local AWS": ("tests/local/aws/", "tests/contract/", "tests/adapters/test_nodegroups.py"),
    "the demo": ("tests/local/test_demo.py", "tests/local/test_demo_upgrade.py"),
    "two clusters": ("tests/local/two_clusters/",),
    "the template": ("tests/infra/",),
    "the package": ("tests/local/package/",),
    "kubectl": ("tests/local/cluster/test_kubectl.py",),
    "killed anywhere": ("tests/simulation/test_world.py",),
    "broken builds": ("tests/simulation/mutations/",),
    "the site": ("tests/docs/",),  # built once
}


def room(nodeid: str) -> str:
    """What goes to one worker together, in its order: the tests of a room, or of a file."""
    found = (name for name, places in ROOMS.items() if nodeid.startswith(places))
    return next(found, nodeid.split("::", maxsplit=1)[0])


def in_turn(items: list[pytest.Item]) -> None:
    """Sort: the rooms in their order, everything else after them by file, in whatever order the files were read."""
    turns = {name: turn for turn, name in enumerate(ROOMS)}
    items.sort(key=lambda item: (turns.get(room(item.nodeid), len(turns)), item.path))


def shares_of_reading(files: Sequence[Path], worker: str, workers: int) -> list[str]:
    """Return the files in an order that begins elsewhere for each worker (`gw0`, `gw1` ...).

    Every worker collects all tests. The first that reads a file rewrites its assertions, which takes most of the time,
    and writes the bytecode, which the others find unless they read the same file at the same moment.
    """
    begin = len(files) * int(worker.removeprefix("gw")) // workers
    return [str(file) for file in (*files[begin:], *files[:begin])]


class RoomByRoom(LoadScopeScheduling):
    """A worker that is done gets the next room or file, in the order of the collected tests."""

    def _split_scope(self, nodeid: str) -> str:
        return room(nodeid)
