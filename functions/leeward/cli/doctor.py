"""`leeward doctor [--cluster NAME]`: check the deployment and suggest fixes.

Decides how the checks are requested and printed; `leeward.doctor` decides what is in order."""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Any

from leeward.cli.fixes import fix_lines
from leeward.cli.live import note_origin
from leeward.cli.member import access_of, profile_of
from leeward.cli.output import emit
from leeward.cli.tables import Table
from leeward.doctor.checks.account import without_credentials
from leeward.doctor.diagnosis import diagnose, healthy
from leeward.doctor.finding import PART_OF, Finding, Part, State
from leeward.doctor.reading import UnreadFact, read
from leeward.errors import InvalidInputError

DESCRIPTION = """Checks every part of the deployment (functions, state machines, queues, rules, schedules, alarms,
runs, clusters, policies, groups) and prints whether it is in order, what was found, and the fix. It changes nothing.
Without --cluster it checks all clusters. A part that may not be read is unknown, and the permission is named. Exit
code 1 when something has failed."""
_STYLES = {State.OK: "green", State.WARNING: "yellow", State.FAILED: "red", State.UNKNOWN: "cyan"}
_WORST_FIRST = (State.FAILED, State.WARNING, State.UNKNOWN, State.OK)
_NAMED = 3  # objects named in a line of objects that are in order


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add nothing: the command has the general options alone."""
    del parser


def run(arguments: argparse.Namespace) -> int:
    """Run the checks and print them; return 1 if any has failed. Raises InvalidInputError for a snapshot."""
    if arguments.snapshot is not None:
        raise InvalidInputError(
            "doctor: found --snapshot, expected --cluster NAME or no cluster at all: a deployment is looked at live"
        )
    findings = _findings(arguments)
    emit(to_json(findings), arguments.view, lambda: _report(findings))
    return 0 if healthy(findings) else 1


def to_json(findings: Iterable[Finding]) -> dict[str, Any]:
    """Return the document that `docs/schema/doctor.json` describes."""
    return {"findings": [found.to_json() for found in findings]}


def _findings(arguments: argparse.Namespace) -> Sequence[Finding]:
    from leeward.adapters import wiring  # late: --help needs no AWS library
    from leeward.doctor.gather import gather

    profile = profile_of(arguments)
    deployment = wiring.command_line_deployment(arguments.region, **profile)
    identity = read("sts:GetCallerIdentity", deployment.identity)
    if isinstance(identity, UnreadFact):
        return without_credentials(identity)
    note_origin(arguments, [(identity.account, identity.region)])
    access = access_of(arguments)
    facts = gather(
        deployment,
        lambda cluster: wiring.command_line_ports(cluster, arguments.region, identity.account, **access),
        identity,
        requested_cluster=arguments.cluster,
        now=arguments.now,
        there=wiring.command_line_deployment(arguments.region, **access) if "elsewhere" in access else None,
    )
    return diagnose(facts)


def _report(findings: Sequence[Finding]) -> list[Table | str]:
    parts = [part for part in Part if any(PART_OF[found.check] is part for found in findings)]
    table = Table(("PART", "STATE", "CHECK", "FOUND"), optional=("PART",), kind="check")
    for part in parts:
        _add_part(table, part, [found for found in findings if PART_OF[found.check] is part])
    return [table, *_fixes(findings), "", _summary(findings)]


def _add_part(table: Table, part: Part, findings: Sequence[Finding]) -> None:
    """Add one row for each check that is in order, and one for each other finding."""
    for check in dict.fromkeys(found.check for found in findings):
        mine = [found for found in findings if found.check is check]
        fine = [found for found in mine if found.state is State.OK]
        if fine:
            table.add(part.value, State.OK.value, check.value, _short(fine), names=(check,), style=_STYLES[State.OK])
        for found in mine:
            if found.state is not State.OK:
                cells = (part.value, found.state.value, check.value, f"{found.object}: {found.found}")
                table.add(*cells, names=(check,), style=_STYLES[found.state])


def _fixes(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield the fix of each finding, the worst first: the same fix once, with its commands on lines of their own."""
    troubles = [found for state in _WORST_FIRST for found in findings if found.state is state and found.fix]
    objects: dict[str, list[str]] = {}
    for found in troubles:
        objects.setdefault(found.fix or "", []).append(found.object)
    for fix, named in objects.items():
        more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
        yield ""
        yield from fix_lines(f"fix {', '.join(named[:_NAMED])}{more}", fix)


def _short(fine: Sequence[Finding]) -> str:
    """Return the objects without the words that all of them begin with."""
    if len(fine) == 1:
        return f"{fine[0].object}: {fine[0].found}"
    words = [found.object.split() for found in fine]
    same = sum(1 for _ in takewhile(lambda place: len(set(place)) == 1, zip(*words, strict=False)))
    named = ", ".join(" ".join(one[same:]) for one in words[:_NAMED])
    return f"{len(fine)}: {named}{' …' if len(fine) > _NAMED else ''}"


def _summary(findings: Sequence[Finding]) -> str:
    counts = {state: sum(found.state is state for found in findings) for state in State}
    return ", ".join(f"{counts[state]} {state.value}" for state in _WORST_FIRST if counts[state])
