"""`make demo`: prepare the stack, send the messages, show and judge the results. Exit code 0 only if every promise is
kept.
"""

import argparse
import json
import sys
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from rich.live import Live
from rich.text import Text

from leeward.cli.report.page import page
from leeward.cli.report.record import RunRecord
from local import fleet
from local.demo import judge, ledger, record, scenario, view
from local.foreign import consent
from local.stack import ROOT, LocalStack
from local.stage import console, perform, say, wait_until

SETTLE_SECONDS = 300
PLAY_SECONDS = 600  # limits only the wait for a run that does not end
REPORT = ROOT / "build" / "demo" / "report.html"


def main() -> int:
    """Prepare, send, watch, judge."""
    parser = argparse.ArgumentParser(prog="python -m local.demo", description=__doc__)
    consent.add_options(parser)
    options = parser.parse_args()
    try:
        foreign = consent.confirmed(options)
    except consent.NotConfirmedError as error:
        console.print(error, style="bold red")
        return 1
    return perform(run, foreign)


def run(stack: LocalStack) -> bool:
    """Run the whole demo on a started stack; return whether every promise was kept."""
    say(f"local AWS on {stack.endpoint}, Kubernetes API on {stack.api}")
    scenario.build_fleet(stack)
    say("three zones, groups web-spot (5), web-on-demand (4), and other-team (1), which no policy selects")
    say(f"cdk bootstrap and cdk deploy took {stack.deploy(scenario.settings(stack)):.0f} s")
    fleet.apply(stack, scenario.WORKLOADS)
    wait_until(lambda: scenario.settled(stack), SETTLE_SECONDS, "nodes Ready and pods running")
    stack.client("lambda").invoke(FunctionName="leeward-sync")
    say(f"{scenario.NODES} nodes Ready, workloads running, leeward-sync has put its terminate hook on the web groups")
    victims = scenario.choose(stack)
    played = datetime.now(UTC)
    scenario.play(stack, victims)
    say("played: a spot warning, a maintenance of two instances, a nonsense message, a scale-in, another team's")
    say("        terminate hook, and the spot warning once more")
    watch(stack, victims)
    findings = judge.judge(stack, victims)
    found = view.results(stack, victims)
    view.show(view.report(found, findings))
    say(f"drawn: {write_report(stack, played)}")
    told = {"results": [asdict(one) for one in found], "findings": [asdict(one) for one in findings]}
    REPORT.with_name("results.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    return all(finding.good for finding in findings)


def write_report(stack: LocalStack, played: datetime) -> Path:
    """Write the run as a record and as a page beside it; return the page's path, relative to the demo's working
    directory if it is below.
    """
    document = record.build(record.read(stack, played)).to_json()
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.with_name("record.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    REPORT.write_text(page(RunRecord.from_json(document)), encoding="utf-8")  # as `leeward report` would draw it
    return REPORT.relative_to(Path.cwd()) if REPORT.is_relative_to(Path.cwd()) else REPORT


def watch(stack: LocalStack, victims: scenario.Victims) -> None:
    """Show nodes, pods and phases until every termination has ended."""
    deadline = time.monotonic() + PLAY_SECONDS
    if not console.is_terminal:
        view.follow(stack, victims, console, lambda: done(stack) or time.monotonic() > deadline)
        return
    with Live(console=console, refresh_per_second=4) as live:
        while time.monotonic() < deadline:
            fleet = view.lines([view.fleet_table(stack, victims)], console.width, coloured=True)
            live.update(Text.from_ansi("\n".join(fleet)))
            if done(stack):
                return
            time.sleep(0.5)


def done(stack: LocalStack) -> bool:
    """Return whether four terminations are closed, the queue empty, the groups back at their sizes."""
    records = ledger.terminations(stack)
    closed = [record for record in records if record.status == "closed"]
    expected = judge.expected_count()
    return (
        len(closed) >= expected
        and len(records) == len(closed)
        and judge.settled_sizes(stack)
        and (ledger.queue_depth(stack) == 0)
    )


if __name__ == "__main__":
    sys.exit(main())
