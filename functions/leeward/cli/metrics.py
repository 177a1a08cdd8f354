"""`leeward metrics`: the state of a cluster's terminations, upgrades, runs and pauses in Prometheus' text format.

Decides which figures the records of the table give. All are gauges: the table holds a state, and counters of events are
CloudWatch's (docs/reference/metrics.md). Format: Prometheus, "Exposition formats", text format 0.0.4."""

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from leeward.cli.live import note_origin
from leeward.cli.member import profile_of
from leeward.cli.output import Output, emit
from leeward.disruption.record import DisruptionRecord
from leeward.errors import InvalidInputError
from leeward.model.pause import PauseRecord
from leeward.model.termination import Status, TerminationRecord
from leeward.upgrade.record import UpgradeRecord

DESCRIPTION = """Prints the state of a cluster's terminations, upgrades, disruption runs and pauses as metrics in
Prometheus' text format, for a cron job and node-exporter's textfile collector. It reads the whole table, one call for
each megabyte: run it each minute at most."""
READABLE = 0o644  # the collector is another user than the cron job
HELP: Mapping[str, str] = {
    "leeward_terminations_open": "Terminations under way, by their first cause.",
    "leeward_terminations_blocked": "Open terminations whose pods do not leave.",
    "leeward_termination_oldest_open_seconds": "Age of the oldest open termination.",
    "leeward_terminations_ended": "Terminations of the last seven days that have ended, by outcome.",
    "leeward_upgrade_running": "1 while an upgrade of the group has started and not ended.",
    "leeward_upgrade_held": "1 while nothing new starts in the upgrade of the group, by kind of the hold.",
    "leeward_upgrade_failed": "1 if the last upgrade of the group has failed or was stopped, until its next start.",
    "leeward_upgrade_nodes_replaced": "Old nodes that the last upgrade of the group has replaced.",
    "leeward_disruption_run_open": "1 while a disruption run is under way, by method.",
    "leeward_disruption_run_nodes": "Nodes of the last disruption run, by state: planned, gone.",
    "leeward_disruption_run_ended_timestamp_seconds": "Time at which the last disruption run ended, by outcome.",
    "leeward_pauses_in_force": "Pauses of the cluster and of its groups, by scope.",
    "leeward_metrics_timestamp_seconds": "Time at which the table was read.",
}
"""Every metric with its help; docs/reference/metrics.md explains them."""

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """Records of one cluster. `upgrades`: of its groups, the last of each; `run` None: there was none."""

    cluster: str
    terminations: Sequence[TerminationRecord]
    upgrades: Iterable[UpgradeRecord]
    run: DisruptionRecord | None
    pauses: PauseRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSample:
    """One value of a metric."""

    name: str
    labels: Labels
    value: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the file."""
    parser.add_argument("--to", metavar="FILE.prom", type=Path, help="write a file; one there is replaced at once")


def run(arguments: argparse.Namespace) -> int:
    """Print or write the metrics."""
    if arguments.snapshot is not None or not arguments.cluster:
        raise InvalidInputError("metrics: found no --cluster, expected --cluster NAME: it reads the table alone")
    found = list(samples(_read(arguments), arguments.now))
    text = exposition(found)
    if arguments.to is not None:
        _replace(arguments.to, text)
    elif arguments.view.output in {Output.JSON, Output.YAML}:
        emit(_document(found), arguments.view, text.splitlines)
    else:
        print(text, end="")
    return 0


def _read(arguments: argparse.Namespace) -> Records:
    from leeward.adapters.wiring import command_line_history  # late: --help needs no AWS library

    cluster, own = arguments.cluster, profile_of(arguments)
    ports, terminations = command_line_history(cluster, arguments.region, arguments.account, **own)
    note_origin(arguments, ports.origins)
    groups = [group.name for group in ports.groups.of_clusters([cluster])]
    return Records(
        cluster=cluster,
        terminations=terminations.of_cluster(cluster),
        upgrades=ports.upgrades.read_all(groups).values(),
        run=ports.disruptions.read(cluster),
        pauses=ports.pauses.read(cluster),
    )


def samples(records: Records, now: datetime) -> Iterator[MetricSample]:
    """Yield the values of every metric, in the order of `HELP`."""
    cluster = {"cluster": records.cluster}
    found = [*_terminations(records.terminations, now), *_upgrades(records.upgrades), *_run(records.run)]
    scopes = Counter(pause.scope.value for pause in records.pauses.pauses if pause.in_force(now))
    found += [("leeward_pauses_in_force", {"scope": scope}, count) for scope, count in scopes.items()]
    found.append(("leeward_metrics_timestamp_seconds", {}, now.timestamp()))
    order = {name: number for number, name in enumerate(HELP)}
    for name, labels, value in sorted(found, key=lambda each: (order[each[0]], sorted(each[1].items()))):
        yield MetricSample(name=name, labels={**cluster, **labels}, value=value)


def _terminations(records: Iterable[TerminationRecord], now: datetime) -> Iterator[tuple[str, Labels, float]]:
    opened, blocked, ended = Counter[tuple[str, str]](), Counter[str](), Counter[tuple[str, str]]()
    oldest: dict[str, datetime] = {}
    for record in records:
        group = record.subject.group or ""
        if record.status is Status.CLOSED:
            ended[group, record.outcome.value if record.outcome is not None else ""] += 1
            continue
        opened[group, record.causes[0].kind.value if record.causes else ""] += 1
        blocked[group] += bool(record.blocked_by)
        since = record.times.get("claimed", now)
        oldest[group] = min(since, oldest.get(group, since))
    for (group, cause), count in opened.items():
        yield "leeward_terminations_open", {"group": group, "cause": cause}, count
    for group, count in blocked.items():
        yield "leeward_terminations_blocked", {"group": group}, count
        age = max((now - oldest[group]).total_seconds(), 0.0)
        yield "leeward_termination_oldest_open_seconds", {"group": group}, age
    for (group, outcome), count in ended.items():
        yield "leeward_terminations_ended", {"group": group, "outcome": outcome}, count


def _upgrades(records: Iterable[UpgradeRecord]) -> Iterator[tuple[str, Labels, float]]:
    for record in records:
        group = {"group": record.group}
        failed = not record.runs and (bool(record.error) or record.ended is None)
        yield "leeward_upgrade_running", group, float(record.runs)
        yield "leeward_upgrade_failed", group, float(failed)
        yield "leeward_upgrade_nodes_replaced", group, float(record.finished)
        if record.runs and record.hold is not None:
            yield "leeward_upgrade_held", {**group, "kind": record.hold.kind}, 1.0


def _run(record: DisruptionRecord | None) -> Iterator[tuple[str, Labels, float]]:
    if record is None:
        return
    yield "leeward_disruption_run_open", {"method": record.method.value}, float(record.open)
    yield "leeward_disruption_run_nodes", {"state": "planned"}, float(len(record.nodes))
    yield "leeward_disruption_run_nodes", {"state": "gone"}, float(len(record.gone))
    if record.ended is not None and record.outcome is not None:
        outcome = {"outcome": record.outcome.value}
        yield "leeward_disruption_run_ended_timestamp_seconds", outcome, record.ended.timestamp()


def exposition(found: Sequence[MetricSample]) -> str:
    """Return the text: HELP and TYPE of each metric that has a value, then its samples. `found`: in their order."""
    lines: list[str] = []
    last = ""
    for sample in found:
        if sample.name != last:
            lines += [f"# HELP {sample.name} {HELP[sample.name]}", f"# TYPE {sample.name} gauge"]
            last = sample.name
        labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in sample.labels.items())
        lines.append(f"{sample.name}{{{labels}}} {sample.value:.15g}")
    return "".join(f"{line}\n" for line in lines)


def _escaped(value: str) -> str:
    r"""Return a label's value with `\`, `"` and line feeds escaped, as the format asks for."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _document(found: Iterable[MetricSample]) -> dict[str, Any]:
    return {"metrics": [{"name": one.name, "labels": dict(one.labels), "value": one.value} for one in found]}


def _replace(path: Path, text: str) -> None:
    """Write the file beside and rename it: a collector never reads a half. Raises InvalidInputError."""
    try:
        with NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}.", delete=False, encoding="utf-8") as file:
            file.write(text)
        whole = Path(file.name)
        whole.chmod(READABLE)
        whole.replace(path)
    except OSError as error:
        raise InvalidInputError(f"--to: found {path}, expected a file that can be written: {error.strerror}") from error
