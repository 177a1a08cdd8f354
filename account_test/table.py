"""Results for people: plain columns on the terminal, a Markdown block for docs/account-results.md."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from account_test.results import Difference, Outcome, Result
from account_test.run import Run
from account_test.step import Step

NOTHING = "nothing that was looked at"


def plain(results: Sequence[Result]) -> str:
    """Return one row a step, then every broken promise, then the differences."""
    wide = max([len("STEP"), *(len(one.name) for one in results)])
    lines = [f"{'STEP':<{wide}}  {'RESULT':<8}  {'SECONDS':>7}  WHAT"]
    lines += [
        f"{one.name:<{wide}}  {one.outcome.value:<8}  {one.seconds:>7.0f}  {_one_line(one.sentence)}" for one in results
    ]
    lines += ["", "What AWS did differently from our model:"]
    different = [(step, one) for step, one in _all(results) if not one.same]
    lines += [f"  {step}: {one.about}: the model says {one.model}, measured {one.measured}" for step, one in different]
    lines += [] if different else [f"  {NOTHING}"]
    figures = [(step, one) for step, one in _all(results) if one.same]
    if figures:
        lines += ["", "As the model says:"]
        lines += [f"  {step}: {one.about}: {one.measured}" for step, one in figures]
    return "\n".join(lines)


def markdown(run: Run, results: Sequence[Result], at: datetime) -> str:
    """Return the block that a person pastes into docs/account-results.md. It names neither account nor cluster."""
    where = "the local stack" if run.endpoint else "AWS"
    lines = [
        f"## {at:%Y-%m-%d}, {run.region}, {where}",
        "",
        "| step | result | seconds | what |",
        "|---|---|---|---|",
        *(
            f"| {one.name} | {one.outcome.value} | {one.seconds:.0f} | {_hidden(run, _cell(one.sentence))} |"
            for one in results
        ),
        "",
        "| what AWS did | our model | measured |",
        "|---|---|---|",
        *(
            f"| {_cell(one.about)} ({step}){'' if not one.same else ', the same'} | {_cell(one.model)} | "
            f"{_hidden(run, _cell(one.measured))} |"
            for step, one in _all(results)
        ),
    ]
    return "\n".join(lines) + "\n"


def plan(steps: Sequence[Step]) -> list[str]:
    """Return a line for each step: its name, its usual duration and its cost."""
    wide = max(len(step.name) for step in steps)
    return [f"{step.name:<{wide}}  {step.takes}" for step in steps]


def counted(results: Sequence[Result]) -> str:
    """Return the last line, the counts by outcome."""
    found = {outcome: sum(one.outcome is outcome for one in results) for outcome in Outcome}
    return ", ".join(f"{count} {outcome.value}" for outcome, count in found.items())


def not_shown(results: Sequence[Result]) -> list[str]:
    """Return a line for each step with promises that this run did not show."""
    unproven = {one.name: [finding.promise for finding in one.findings if finding.unproven] for one in results}
    return [f"NOT PROVEN by this run: {step}: {', '.join(promises)}" for step, promises in unproven.items() if promises]


def _all(results: Sequence[Result]) -> Iterator[tuple[str, Difference]]:
    for result in results:
        for one in result.differences:
            yield result.name, one


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _cell(text: str) -> str:
    return _one_line(text).replace("|", "\\|")


def _hidden(run: Run, text: str) -> str:
    return text.replace(run.account, "ACCOUNT").replace(run.cluster, "CLUSTER")
