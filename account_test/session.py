"""Run from its first resource to its last: take the steps, report, remove."""

import json
import shutil
import signal
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from account_test import first_stage, leftovers, report, table
from account_test.aws import Aws
from account_test.checks import launch_rights
from account_test.context import Context
from account_test.errors import EXPECTED
from account_test.journal import Journal
from account_test.kubernetes import Kube
from account_test.recording import Recording
from account_test.removal import Remover, remove_all
from account_test.results import Outcome, Result, succeeded
from account_test.run import Run
from account_test.step import Step, carried_out
from account_test.steps import DEPLOYMENT


def say(line: str) -> None:
    """Print one line of progress."""
    print(f"{time.strftime('%H:%M:%S')} {line}", flush=True)


def perform(run: Run, aws: Aws, kube: Kube, sender: str | None, wanted: Sequence[Step]) -> int:
    """Run the test and return the exit code: 0 where nothing is broken and nothing is left. Whatever happens,
    everything made is removed.
    """
    context = Context(run=run, aws=aws, kube=kube, journal=Journal(run, run.journal), say=say)
    context.base["sender"] = sender or ""
    context.base["senderRole"] = sender if sender and ":role/" in sender else ""
    results: list[Result] = []
    code = 1
    try:
        take(context, results, wanted)
        code = 0 if succeeded(results) else 1
    except KeyboardInterrupt:
        say("interrupted: what was made is removed now")
        code = 130
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)  # until the removal answers them
        if not _cleaned(context) and code == 0:
            code = 1
        shutil.rmtree(run.folder / "cdk.out", ignore_errors=True)
    return code


def _cleaned(context: Context) -> bool:
    """Remove everything that the run made; return whether nothing of it is left."""
    run = context.run
    say(f"{len(context.journal.left)} things are to be removed")
    left = remove_all(context.journal, Remover(aws=context.aws, kube=context.kube, pause=run.look, say=say), say)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a look changes nothing and may be interrupted
    try:
        clean = looked_after(run, context.aws) and not left
    except KeyboardInterrupt:
        say("interrupted: what is still in the account was not looked at")
        return False
    if clean:
        say("everything that this run made is removed")
    return clean


def looked_after(run: Run, aws: Aws) -> bool:
    """Report what is still in the account after the removal; return whether nothing is."""
    found = leftovers.after_removal(aws, run, whole=True)
    for name in found.there:
        say(f"STILL THERE: {name}")
    for kind in found.unread:
        say(f"not looked at: {kind}")
    return not found.there


def take(context: Context, results: list[Result], wanted: Sequence[Step]) -> None:
    """Take all steps; those after a gate that was not kept are not run. Report in any case."""
    recordings: list[Recording] = []
    try:
        for step in wanted:
            if step.name == DEPLOYMENT:
                context.extras = first_stage.carried(context.run, results)
            say(f"{step.name}: {step.proves} (takes {step.takes})")
            result = carried_out(step, context, recordings)
            results.append(result)
            say(f"{step.name}: {result.outcome.value} after {result.seconds:.0f} s: {result.sentence}")
            if step.gate and result.outcome in {Outcome.BROKEN, Outcome.NOT_RUN}:
                say(f"the steps after it need it and are not run: {step.name}")
                break
    finally:
        results[:] = first_stage.settled(launch_rights.settled(results), context.extras)
        publish(context, recordings, results)


def publish(context: Context, recordings: Sequence[Recording], results: Sequence[Result]) -> None:
    """Print the table, and write the files beside the journal. The results are kept if the report cannot be drawn."""
    folder, at = context.run.folder, datetime.now(UTC)
    folder.mkdir(parents=True, exist_ok=True)
    document = {"run": context.run.id, "at": at.isoformat(), "results": [one.to_json() for one in results]}
    (folder / "results.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    (folder / "results.md").write_text(table.markdown(context.run, results, at), encoding="utf-8")
    print(f"\n{table.plain(results)}\n", flush=True)
    say(table.counted(results))
    for line in table.not_shown(results):
        say(line)
    try:
        page = report.write(context, recordings, results, folder / "report.html") if recordings else None
    except EXPECTED as error:
        say(f"no report was drawn: {error}")
    else:
        say(f"drawn: {page}" if page else "no report was drawn: no execution is reported of")
    say(f"written: {folder}/results.json and results.md, a block for docs/account-results.md")
