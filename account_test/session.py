"""Run from its first resource to its last: create the foundation, deploy, take the steps, report, remove."""

import json
import shutil
import signal
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from account_test import report, table
from account_test.aws import Aws
from account_test.context import Context
from account_test.deployment import deploy
from account_test.foundation import lay
from account_test.journal import Journal
from account_test.kubernetes import Kube
from account_test.recording import Recording
from account_test.removal import Remover, remove_all
from account_test.results import Outcome, Result, succeeded
from account_test.run import Run
from account_test.steps import EXPECTED, Step, carried_out, steps

DEPLOYMENT = "deployment"
DEPLOYS = "cdk deploy makes all of Leeward beside what is there, and its functions are let into the cluster"


def say(line: str) -> None:
    """Print one line of progress."""
    print(f"{time.strftime('%H:%M:%S')} {line}", flush=True)


def perform(run: Run, aws: Aws, kube: Kube, sender: str | None, only: Sequence[str] = ()) -> int:
    """Run the test and return the exit code: 0 where nothing is broken and nothing is left. Whatever happens,
    everything made is removed.
    """
    context = Context(run=run, aws=aws, kube=kube, journal=Journal(run, run.journal), say=say)
    context.base["sender"] = sender or ""
    results: list[Result] = []
    code = 1
    try:
        take(context, results, steps(only))
        code = 0 if succeeded(results) else 1
    except KeyboardInterrupt:
        say("interrupted: what was made is removed now")
        code = 130
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)  # until the removal answers them
        say(f"{len(context.journal.left)} things are to be removed")
        left = remove_all(context.journal, Remover(aws=aws, kube=kube, pause=run.look), say)
        if left and code == 0:
            code = 1
        shutil.rmtree(run.folder / "cdk.out", ignore_errors=True)
        if not left:
            say("everything that this run made is removed")
    return code


def take(context: Context, results: list[Result], wanted: Sequence[Step]) -> None:
    """Take all steps; if the deployment's step fails, the others are not run. Report in any case."""
    recordings: list[Recording] = []
    try:
        laid = carried_out(Step(name=DEPLOYMENT, proves=DEPLOYS, run=_deployed), context, recordings)
        results.append(laid)
        say(f"{laid.name}: {laid.outcome.value} after {laid.seconds:.0f} s {laid.why}")
        for step in wanted if laid.outcome is Outcome.KEPT else ():
            say(f"{step.name}: {step.proves}")
            result = carried_out(step, context, recordings)
            results.append(result)
            say(f"{step.name}: {result.outcome.value} after {result.seconds:.0f} s: {result.sentence}")
    finally:
        publish(context, recordings, results)


def _deployed(context: Context, _: list[Recording]) -> Result:
    from account_test.deployed import check

    cluster = context.aws("eks").describe_cluster(name=context.run.cluster)["cluster"]
    lay(context, cluster)
    deploy(context, context.base["sender"] if context.base["sender"].find(":role/") > 0 else None)
    return check(context, DEPLOYMENT, DEPLOYS)


def publish(context: Context, recordings: Sequence[Recording], results: Sequence[Result]) -> None:
    """Print the table, and write the files beside the journal. The results are kept if the report cannot be drawn."""
    folder, at = context.run.folder, datetime.now(UTC)
    folder.mkdir(parents=True, exist_ok=True)
    document = {"run": context.run.id, "at": at.isoformat(), "results": [one.to_json() for one in results]}
    (folder / "results.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    (folder / "results.md").write_text(table.markdown(context.run, results, at), encoding="utf-8")
    print(f"\n{table.plain(results)}\n", flush=True)
    say(table.counted(results))
    try:
        page = report.write(context, recordings, results, folder / "report.html")
    except EXPECTED as error:
        say(f"no report was drawn: {error}")
    else:
        say(f"drawn: {page}" if page else "no report was drawn: no execution is reported of")
    say(f"written: {folder}/results.json and results.md, a block for docs/account-results.md")
