"""`leeward metrics`: Prometheus' text format, from the table alone."""

import json
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import jsonschema
import pytest
import yaml

from leeward.adapters import wiring
from leeward.cli.metrics import HELP, Records, exposition, samples
from leeward.model.pause import PauseRecord
from leeward.model.termination import Outcome, Status
from tests.architecture.metrics import METRICS
from tests.fakes.builders import CLUSTER, a_group, a_pause, a_subject
from tests.fakes.calls import Calls
from tests.fakes.system import FakeSystem
from tests.unit.notifications.test_events import BLOCKED, NOW, a_record
from tests.unit.notifications.workflows import CANARY, a_run, an_upgrade, run_events

REFERENCE = Path("docs/reference/metrics.md").read_text()
DASHBOARD = Path("examples/prometheus/grafana-dashboard.json")
EXPORTER = Path("examples/prometheus/yace.yml")
LABELS = r'[a-z_]+="(?:[^"\\\n]|\\[\\n"])*"'
SAMPLE = re.compile(rf"([a-z_]+)\{{({LABELS}(?:,{LABELS})*)\}} (-?[0-9.]+(?:e[+-]?[0-9]+)?)")


def parsed(text):
    """{(metric, labels): value} of a text that keeps every rule of the format."""
    assert text.endswith("\n")
    typed, seen, found = "", [], {}
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if line.startswith("# HELP "):
            name = line.split()[2]
            assert name not in seen, f"{name} in two places"
            assert lines[number + 1] == f"# TYPE {name} gauge"
            seen.append(name)
        elif line.startswith("# TYPE "):
            typed = line.split()[2]
        else:
            match = SAMPLE.fullmatch(line)
            assert match, line
            assert match[1] == typed
            assert match.group(1, 2) not in found, f"{line} twice"
            found[match.group(1, 2)] = float(match[3])
    return found


def everything(cluster=CLUSTER, group="web"):
    """Records that give every metric a value."""
    subject = replace(a_subject(), cluster=cluster, group=group)
    now = a_record(subject=subject, blocked_by=BLOCKED)
    done = a_record(subject=subject, status=Status.CLOSED, outcome=Outcome.TERMINATED)
    upgrades = [an_upgrade(group=group, hold=CANARY, finished=3), an_upgrade(group="b", ended=NOW, error="X: y")]
    run = next(event.record for event in run_events().values() if event.record.ended)
    pauses = PauseRecord(cluster=cluster).paused(a_pause())
    return Records(cluster=cluster, terminations=(now, done), upgrades=upgrades, run=run, pauses=pauses)


def text_of(records):
    return exposition(list(samples(records, a_pause().since + timedelta(minutes=1))))


def test_every_metric_has_a_value_with_its_cluster():
    found = parsed(text_of(everything()))
    assert {name for name, _ in found} == set(HELP)
    assert all(f'cluster="{CLUSTER}"' in labels for _, labels in found)
    assert found["leeward_terminations_open", f'cluster="{CLUSTER}",group="web",cause="spot_interruption"'] == 1
    assert found["leeward_upgrade_held", f'cluster="{CLUSTER}",group="web",kind="canary"'] == 1
    assert found["leeward_upgrade_failed", f'cluster="{CLUSTER}",group="b"'] == 1
    assert found["leeward_upgrade_running", f'cluster="{CLUSTER}",group="b"'] == 0
    assert found["leeward_disruption_run_nodes", f'cluster="{CLUSTER}",state="gone"'] == 2


def test_a_cluster_without_anything_has_the_time_alone():
    empty = Records(cluster=CLUSTER, terminations=(), upgrades=(), run=None, pauses=PauseRecord(cluster=CLUSTER))
    assert {name for name, _ in parsed(text_of(empty))} == {"leeward_metrics_timestamp_seconds"}


@pytest.mark.parametrize("name", ['a"b', "a\\", "a\nb", 'a\\"\n', "x} 1\n# TYPE y", "ü"])
def test_a_label_cannot_leave_its_quotes(name):
    found = parsed(text_of(everything(group=name)))
    shown = {re.search(r'group="((?:[^"\\]|\\.)*)"', labels)[1] for metric, labels in found if "group=" in labels}
    plain = {text.replace("\\\\", "\0").replace('\\"', '"').replace("\\n", "\n").replace("\0", "\\") for text in shown}
    assert name in plain


def test_reference_and_dashboard_name_the_metrics_of_the_code():
    assert set(re.findall(r"^\| `(leeward_\w+)` \|", REFERENCE, re.MULTILINE)) == set(HELP)
    dashboard = json.loads(DASHBOARD.read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert set(re.findall(r"leeward_\w+", " ".join(queries))) == set(HELP)
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


def test_the_labels_of_the_reference_are_those_of_the_code_and_the_dashboard_uses_no_other():
    rows = re.findall(r"^\| `(leeward_\w+)` \| (.*?) \|", REFERENCE, re.MULTILINE)
    documented = {name: {"cluster", *re.findall(r"`(\w+)`", labels)} for name, labels in rows}
    given = {}
    for name, labels in parsed(text_of(everything())):
        given.setdefault(name, set()).update(re.findall(r"(\w+)=", labels))
    assert given == documented
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel["targets"]:
            (name,) = set(re.findall(r"leeward_\w+", target["expr"]))
            shown = re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])
            grouped = re.findall(r"by \((.*?)\)", target["expr"])
            assert {*shown, *(label.strip() for each in grouped for label in each.split(","))} <= documented[name]


def test_the_exporter_reads_every_metric_that_the_functions_emit_once():
    document = yaml.safe_load(EXPORTER.read_text())
    jobs = document["customNamespace"]
    names = [metric["name"] for job in jobs for metric in job["metrics"]]
    assert sorted(names) == sorted({name for declared in METRICS.values() for name in declared})
    assert {job["namespace"] for job in jobs} == {"Leeward"}
    assert {tuple(job["statistics"]) for job in jobs} == {("Sum",), ("Maximum",)}


class FakePastTerminations(Calls):
    """Records of one cluster."""

    def __init__(self):
        super().__init__()
        self.records = []

    def of_cluster(self, cluster):
        self._call("of_cluster")
        return [record for record in self.records if record.subject.cluster == cluster]


@pytest.fixture
def system(monkeypatch):
    found = FakeSystem(groups=[a_group("web")])
    found.terminations = FakePastTerminations()
    monkeypatch.setattr(wiring, "command_line_history", lambda *_, **__: (found.ports, found.terminations))
    found.upgrades.write(an_upgrade(cluster=CLUSTER))
    found.disruptions.write(a_run(cluster=CLUSTER))
    return found


def test_it_is_printed_and_written_in_one_piece(leeward, system, tmp_path):
    printed = leeward("metrics", "--cluster", CLUSTER, "--now", "2026-03-02T10:00:00Z")
    assert printed.code == 0, printed.err
    assert ("leeward_upgrade_running", f'cluster="{CLUSTER}",group="web"') in parsed(printed.out)
    file = tmp_path / "leeward.prom"
    file.write_text("half of an old one")
    written = leeward("metrics", "--cluster", CLUSTER, "--now", "2026-03-02T10:00:00Z", "--to", file)
    assert (written.code, written.out, file.read_text()) == (0, "", printed.out)
    assert [path.name for path in tmp_path.iterdir()] == ["leeward.prom"]
    assert file.stat().st_mode & 0o777 == 0o644


def test_a_place_that_cannot_be_written_is_named(leeward, system, tmp_path):
    said = leeward.refuses("metrics", "--cluster", CLUSTER, "--to", tmp_path / "nowhere" / "leeward.prom")
    assert "--to: found" in said
    assert list(tmp_path.iterdir()) == []


def test_it_reads_a_live_cluster_alone(leeward, system):
    assert "expected --cluster NAME" in leeward.refuses("metrics")


def test_json_has_the_same_values(leeward, system):
    found = leeward("metrics", "--cluster", CLUSTER, "--now", "2026-03-02T10:00:00Z", "-o", "json").json
    jsonschema.validate(found, json.loads(Path("docs/schema/metrics.json").read_text()))
    printed = parsed(leeward("metrics", "--cluster", CLUSTER, "--now", "2026-03-02T10:00:00Z").out)
    assert len(found["metrics"]) == len(printed)
