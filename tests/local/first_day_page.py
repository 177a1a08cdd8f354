"""The page docs/getting-started-local.md: made from the story and the outputs of a run, with what differs between runs
replaced."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.local.first_day_story import STORY, Chapter, Command

PAGE = Path("docs/getting-started-local.md")
HEAD = """# Getting started on the local stack

This page is a first day with Leeward on a cluster that runs on your machine: no account, no Docker. Every command was
run by a test (`tests/local/test_first_day.py`), and the outputs are those of that run. Ids are shortened, lines may be
left out, and your times differ. `make tutorial` writes this page again.

You need Python 3.11 or newer, make, git and `kubectl`. In one terminal:

```bash
make local STACK_ONLY=1
```

It starts a Kubernetes cluster named `demo` with nine nodes in two Auto Scaling groups, and keeps running. When it
prints `ready`, open a second terminal in the same folder:

```bash
. .local/env
export PATH="$PWD/.venv/bin:$PWD/node_modules/.bin:$PATH"
mkdir -p build
```
"""
END = """
## Where to go from here

* `make local` without `STACK_ONLY=1` deploys all of this for you. `make rebalance`, `make maintenance` and
  `make scale-in` play other events.
* [Getting started on an account](getting-started-account.md) does the same with a cluster of yours.
* [policy.md](policy.md) is the reference of policies, [command-line.md](command-line.md) that of the commands.
"""
IDS = re.compile(r"\b(i|ami|lt|sg|subnet|vpc)-[0-9a-f]{8,17}\b")
INSTANT = re.compile(r"\b\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?Z")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)  # of the page: the first instant that an output has
VARIABLE = (  # pattern, replacement
    (re.compile(r"\b\w{3}, \d{2} \w{3} \d{4} \d{2}:\d{2}:\d{2} GMT"), "Thu, 01 Jan 2026 12:00:00 GMT"),
    (re.compile(r"(Ready\s+<none>\s+)\d+\w+"), r"\g<1>30s"),
    (re.compile(r"http://127\.0\.0\.1:\d+"), "http://127.0.0.1:PORT"),
)


class Replaced:
    """Replacement of what differs between runs: in the whole story the same id is the same, and the time between two
    instants is that of the run."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}
        self._first: datetime | None = None

    def text(self, output: str) -> str:
        """The output without colours, with each id numbered in the order in which the ids came."""
        plain = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", output)
        for pattern, replacement in VARIABLE:
            plain = pattern.sub(replacement, plain)
        plain = INSTANT.sub(self._instant, plain)
        return "\n".join(line.rstrip() for line in IDS.sub(self._number, plain).splitlines()).strip("\n")

    def _instant(self, found: re.Match[str]) -> str:
        instant = datetime.fromisoformat(found.group().replace("Z", "+00:00")).replace(microsecond=0)
        self._first = self._first or instant
        return (NOON + (instant - self._first)).strftime("%Y-%m-%dT%H:%M:%SZ")

    def _number(self, found: re.Match[str]) -> str:
        kind = found.group(1)
        count = sum(name.startswith(f"{kind}-") for name in self._ids)
        return self._ids.setdefault(found.group(), f"{kind}-{count + 1:04}")


def shown(command: Command, output: str) -> str:
    """What stands on the page of an output."""
    lines = "\n".join(line for line in output.splitlines() if not line or re.search(command.shown, line))
    return re.sub(r"\n{3,}", "\n\n", lines).strip("\n")


def page(outputs: Mapping[str, str]) -> str:
    """The whole page; `outputs` by command."""
    return HEAD + "".join(_section(chapter, outputs) for chapter in STORY) + END


def block(command: Command, output: str) -> str:
    """The command and what it printed, as they stand on the page."""
    lines = ["```console", f"$ {command.line}"]
    return "\n".join([*lines, *([output] if output else []), "```"])


def _section(chapter: Chapter, outputs: Mapping[str, str]) -> str:
    blocks = [block(command, shown(command, outputs[command.line])) for command in chapter.commands]
    return (
        "\n"
        + "\n\n".join([f"## {chapter.title}", chapter.before, *blocks, *([chapter.after] if chapter.after else [])])
        + "\n"
    )


def differences(kept: str, outputs: Mapping[str, str] | None) -> Sequence[str]:
    """What the kept page says differently: a title, a text, a command, or the output of one that is the same in every
    run. Without `outputs` these are not compared."""
    found = [] if kept.startswith(HEAD) and kept.endswith(END) else ["the first or the last section"]
    for chapter in STORY:
        parts = [f"## {chapter.title}\n", chapter.before, chapter.after]
        for command in chapter.commands:
            compared = command.exact and outputs is not None
            whole = block(command, shown(command, outputs[command.line]) if compared else "")
            parts.append(whole if compared else whole.removesuffix("```"))
        found += [part for part in parts if part not in kept]
    return found
