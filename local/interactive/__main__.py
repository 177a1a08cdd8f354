"""`python -m local.interactive EVENT` (make spot, rebalance, maintenance, scale-in): play an event on the running
`make local`, and follow its node.
"""

import argparse
import sys
import time
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError

from local import fleet
from local.interactive import state, targets
from local.interactive.events import EVENTS
from local.interactive.following import Follower
from local.stack import LocalStack, LocalStackError

INTERRUPTED = 130


def main() -> int:
    """Find the stack, choose the node, send the event, follow. Exit code 2 where there is no such stack or node."""
    parser = argparse.ArgumentParser(prog="python -m local.interactive", description=__doc__)
    parser.add_argument("event", choices=tuple(EVENTS))
    parser.add_argument("--node", help="name, short name or instance id (default: an available one)")
    parser.add_argument("--group", help="an available node of this group")
    parser.add_argument("--no-follow", action="store_true", help="only send the event")
    parser.add_argument("--dir", type=Path, default=state.DIRECTORY, help="folder of the running make local")
    options = parser.parse_args()
    try:
        stack = state.running(options.dir.resolve())
        state.check_deployed(stack)
        return play(stack, options)
    except (state.NotRunningError, targets.NoTargetError) as error:
        print(error, file=sys.stderr)
        return 2
    except (OSError, LocalStackError, BotoCoreError, ClientError) as error:
        print(f"the local stack does not answer any more: {error}", file=sys.stderr)
        return 1


def play(stack: LocalStack, options: argparse.Namespace) -> int:
    """Send the event to a node and follow it; a Ctrl-C leaves what it has caused running."""
    event, directory = EVENTS[options.event], options.dir.resolve()
    request = targets.Request(node=options.node, group=options.group, spot=event.spot)
    target = targets.choose(targets.targets(stack), request, directory)
    before = frozenset(str(member["InstanceId"]) for member in fleet.instances_of(stack, target.group))
    sent = event.play(stack, target)
    follower = Follower(stack=stack, target=target, event=event, before=before, began=time.monotonic())
    follower.say(f"sent: {sent}")
    follower.say(f"about: {target.name}, {target.instance}, group {target.group}, {target.zone}")
    if options.no_follow:
        return 0
    try:
        code = follower.follow()
    except KeyboardInterrupt:
        print(f"not followed any more, and still under way: {target.short}")
        return INTERRUPTED
    if code:
        targets.release(directory, target)
    return code


if __name__ == "__main__":
    sys.exit(main())
