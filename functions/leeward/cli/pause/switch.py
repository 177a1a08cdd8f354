"""Pause switch as `leeward pause` and `leeward resume` write it: clusters, caller, and the result.

Decides nothing about what a pause covers (`leeward.model.pause`)."""

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leeward.cli.live import UnknownGroupError, note_origin
from leeward.cli.member import access_of, profile_of, served_by
from leeward.cli.nearest import did_you_mean
from leeward.cli.node_names import listed
from leeward.cli.output import emit
from leeward.cli.pause.shown import described
from leeward.errors import InvalidInputError, LeewardError, RecordChangedError
from leeward.isolation import attempt
from leeward.model.instance import cluster_of
from leeward.model.pause import Pause, PauseRecord
from leeward.model.times import format_instant
from leeward.ports.autoscaling import Groups
from leeward.ports.doctor import DeploymentReader
from leeward.ports.records import PauseSwitches

NO_REASON = "no reason given"  # an emergency leaves no time for words; the caller is recorded anyway
TRIES = 5  # other operators and the reconciler write the same item
LONGEST_WHY = 300  # characters: it stands in every event and in each reason why nothing begins


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """ARN of the caller, and the switches of the clusters that are meant."""

    arn: str
    switches: Mapping[str, PauseSwitches]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of both commands."""
    parser.add_argument("--group", metavar="GROUP", default="", help="only this Auto Scaling group")
    parser.add_argument(
        "--why", metavar="TEXT", default=NO_REASON, type=one_line, help="the reason, for others to read"
    )


def caller_of(arguments: argparse.Namespace, verb: str) -> Caller:
    """Return the caller and the clusters: the one that is named, the one of the group, or all of the deployment. Raises
    InvalidInputError for a snapshot, for a group of no cluster that is meant, or if no cluster is known.
    """
    from leeward.adapters import wiring  # late: --help needs no AWS library

    if arguments.snapshot is not None:
        raise InvalidInputError(
            f"{verb}: found --snapshot, expected --cluster NAME or no cluster at all: a deployment is paused live"
        )
    profile = profile_of(arguments)
    deployment = wiring.command_line_deployment(arguments.region, **profile)
    identity = deployment.identity()
    names = (arguments.cluster,) if arguments.cluster else served_clusters(deployment, verb)
    access = access_of(arguments)
    ports = {name: wiring.command_line_ports(name, arguments.region, identity.account, **access) for name in names}
    note_origin(arguments, ports[names[0]].origins)
    if arguments.group:
        name = _cluster_of(arguments.group, names, ports[names[0]].groups)
        return Caller(arn=identity.arn, switches={name: ports[name].pauses})
    return Caller(arn=identity.arn, switches={name: each.pauses for name, each in ports.items()})


def change(
    caller: Caller, changed: Callable[[PauseRecord], PauseRecord]
) -> tuple[dict[str, PauseRecord], dict[str, PauseRecord]]:
    """Write each switch, and return the records before and after by cluster. `changed` of an equal record writes
    nothing. Raises RecordChangedError if other writers are always faster.
    """
    before, after = dict[str, PauseRecord](), dict[str, PauseRecord]()
    for cluster, switches in caller.switches.items():
        before[cluster], after[cluster] = _write(cluster, switches, changed)
    return before, after


def report(
    arguments: argparse.Namespace, changed: Sequence[tuple[str, Pause]], after: Mapping[str, PauseRecord], verb: str
) -> None:
    """Print the pauses that were changed and those that are in force now. `verb`: paused or resumed."""
    in_force = [
        (cluster, pause)
        for cluster, record in after.items()
        for pause in record.pauses
        if pause.in_force(arguments.now)
    ]
    document = {verb: [to_json(*pair) for pair in changed], "inForce": [to_json(*pair) for pair in in_force]}
    emit(document, arguments.view, lambda: _lines(changed, in_force, verb))


def to_json(cluster: str, pause: Pause) -> dict[str, Any]:
    """Return a pause as `docs/schema/pause.json` describes it."""
    return {
        "cluster": cluster,
        "group": pause.group or None,
        "scope": pause.scope.value,
        "by": pause.by,
        "why": pause.why,
        "since": format_instant(pause.since),
        "until": format_instant(pause.until) if pause.until is not None else None,
    }


def _lines(changed: Sequence[tuple[str, Pause]], in_force: Sequence[tuple[str, Pause]], verb: str) -> Sequence[str]:
    lines = [f"{verb}: {described(*pair)}" for pair in changed] or [f"{verb}: nothing, no such pause was in force"]
    return [*lines, *(f"still paused: {described(*pair)}" for pair in in_force if verb == "resumed")]


def _write(
    cluster: str, switches: PauseSwitches, changed: Callable[[PauseRecord], PauseRecord]
) -> tuple[PauseRecord, PauseRecord]:
    for _ in range(TRIES):
        before = switches.read(cluster)
        wanted = changed(before)
        written = before if wanted == before else switches.write(wanted)
        if written is not None:
            return before, written
    raise RecordChangedError(f"cluster {cluster}: its pause switch changed at each of {TRIES} tries: try again")


def served_clusters(deployment: DeploymentReader, verb: str) -> tuple[str, ...]:
    """Return the clusters that the deployed functions name. Raises InvalidInputError if none of them can be read."""
    answer = attempt(lambda: served_by(deployment))
    served = None if isinstance(answer, LeewardError) else answer
    if not served:
        raise InvalidInputError(
            f"{verb}: found no function of the deployment that names its clusters, expected one; or name --cluster"
        )
    return tuple(cluster.name for cluster in served)


def _cluster_of(group: str, clusters: Sequence[str], groups: Groups) -> str:
    described = groups.describe([group]).get(group)
    cluster = cluster_of(described.tags, clusters) if described is not None else None
    if cluster is None:
        names = [known.name for known in groups.of_clusters(clusters)]
        raise UnknownGroupError(
            f"--group: found {group!r}, expected an Auto Scaling group with a tag of cluster {' or '.join(clusters)}: "
            f"{listed(names)}{did_you_mean(group, names)}"
        )
    return cluster


def one_line(text: str) -> str:
    """Return the text of an operator's reason. Raises ArgumentTypeError for an empty, long or split one."""
    if not text.strip() or len(text) > LONGEST_WHY or re.search(r"[\x00-\x1f\x7f]", text):
        raise argparse.ArgumentTypeError(f"found {text!r}, expected one line of at most {LONGEST_WHY} characters")
    return text.strip()
