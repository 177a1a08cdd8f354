"""Arguments of `leeward drain`: the nodes, kubectl's flags, and what they ask of a drain.

Decides how flags are spelled; an absent flag means that the policy decides."""

import argparse
import re
from datetime import timedelta

from leeward.cli.confirmation import add_yes
from leeward.cli.node_filter import selector
from leeward.cli.options import instant
from leeward.model.termination import NEVER, DrainOptions

TRUE, FALSE = ("true", "t", "1", "True", "TRUE", "T"), ("false", "f", "0", "False", "FALSE", "F")  # pflag's words


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the nodes and the flags."""
    parser.add_argument("nodes", metavar="NODE", nargs="*", help="names, short names or instance ids of nodes")
    parser.add_argument("--group", metavar="GROUP", help="all nodes of this Auto Scaling group instead")
    parser.add_argument(
        "-l", "--selector", metavar="SELECTOR", type=selector, default=(), help="all nodes with these labels: a=b,c!=d"
    )
    parser.add_argument(
        "--cancel", action="store_true", help="take a drain back that has not terminated its node yet (live)"
    )
    parser.add_argument("--watch", dest="wait", action="store_const", const=True, help="the same as --wait")
    _add_flag(parser, "--wait", "follow a live start to its end; Ctrl-C leaves it running (default: with -o table)")
    add_yes(parser)
    _add_flag(parser, "--dry-run", "only show the plan", more_true=("client", "server"), more_false=("none",))
    parser.add_argument(
        "--deadline",
        metavar="TIME",
        type=instant,
        help="when the node is terminated, RFC 3339: remaining pods are deleted at (TIME - their grace) in any case",
    )
    _add_flag(parser, "--keep", "keep the instance in service: drain its node and leave it cordoned")
    _add_flag(parser, "--force", "evict pods without a controller too (policy: drain.unmanagedPods)")
    _add_flag(parser, "--ignore-daemonsets", "leave DaemonSet pods on the node (default: true)")
    _add_flag(parser, "--delete-emptydir-data", "evict pods with emptyDir volumes too (policy: drain.localData)")
    _add_flag(parser, "--disable-eviction", "delete pods without asking PodDisruptionBudgets")
    parser.add_argument(
        "--grace-period", metavar="S", type=_seconds, help="seconds for each pod to end; negative: the pod's own"
    )
    parser.add_argument(
        "--skip-wait-for-delete-timeout",
        metavar="S",
        type=_seconds,
        help="leave pods that are more than S seconds past their deletion deadline (default: 60; 0: never)",
    )


def _add_flag(
    parser: argparse.ArgumentParser,
    flag: str,
    help_text: str,
    more_true: tuple[str, ...] = (),
    more_false: tuple[str, ...] = (),
) -> None:
    """Add a boolean flag as kubectl takes it: `--flag` or `--flag=true|false`, never `--flag false`."""
    where = flag.removeprefix("--").replace("-", "_")
    parser.add_argument(flag, dest=where, action="store_const", const=True, help=f"{help_text} [=true|false]")
    for value, words in ((True, (*TRUE, *more_true)), (False, (*FALSE, *more_false))):
        for word in words:
            parser.add_argument(f"{flag}={word}", dest=where, action="store_const", const=value, help=argparse.SUPPRESS)


def _seconds(text: str) -> int:
    if not re.fullmatch(r"-?\d{1,9}", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"found {text!r}, expected whole seconds")
    return int(text)


def options_of(arguments: argparse.Namespace) -> DrainOptions:
    """Read kubectl's flags; as there, a negative grace period is the pod's own, a skip time-out of 0 skips no pod."""
    grace, skip = arguments.grace_period, arguments.skip_wait_for_delete_timeout
    return DrainOptions(
        evict_unmanaged=arguments.force,
        delete_local_data=arguments.delete_emptydir_data,
        ignore_daemon_sets=arguments.ignore_daemonsets is not False,
        disable_eviction=arguments.disable_eviction is True,
        grace_seconds=None if grace is None or grace < 0 else grace,
        skip_wait_for_delete=None if skip is None else (timedelta(seconds=skip) if skip > 0 else NEVER),
        keep=keeps(arguments),
        deadline=arguments.deadline,
    )


def keeps(arguments: argparse.Namespace) -> bool:
    return arguments.keep is True


def is_followed(arguments: argparse.Namespace) -> bool:
    """Return whether the nodes are followed to their end: by --wait, without it where people read the output."""
    return bool(arguments.view.output.for_people if arguments.wait is None else arguments.wait)
