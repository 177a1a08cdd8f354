"""Commands of the pages: they exist with their options, offline ones are run, and those of an account are marked.

A mark is `<!-- account: REASON -->` (documentation/blocks.py). A new block without one has to pass without an account.
"""

from pathlib import Path

import pytest

from documentation.blocks import blocks
from tests.cli.command import NOON, Command
from tests.docs.pages import BLOCKS, COMMANDS, DATA, DRAWN, FOLDER, NAMES, OUTPUT, RUN_BY
from tests.docs.shell import SHELLS, commands, mistake

DONE, REFUSED = 0, 1


def test_every_block_is_of_a_kind_that_a_test_reads():
    assert len(BLOCKS) > 60
    kinds = {*SHELLS, *DATA, DRAWN, OUTPUT}
    assert [f"{block.where}: {block.language}" for block in BLOCKS if block.language not in kinds] == []
    assert [test for test in RUN_BY.values() if not Path(test).is_file()] == []


def test_every_command_exists_with_its_options():
    lines = [line for block in COMMANDS if not query(block) for line in commands(block)]
    assert len(lines) > 100
    assert "\n".join(f"{line.where}: {line.text}: {said}" for line in lines if (said := mistake(line))) == ""


def query(block):
    """An indented block of a marked page that is no command, such as a query of CloudWatch Logs."""
    first = next(iter(commands(block)), None)
    return block.language == "" and block.account is not None and first is not None and not first.known


@pytest.mark.parametrize(
    "text",
    [
        "leeward plan --snapshop cluster",
        "kubectl leeward drains NODE",
        "make demos",
        "make spot NODES=a",
        "aws ec2 describe-instance",
        "aws autoscaling describe-auto-scaling-groups --group web",
        "kubectl apply -f manifests/role.yaml",
        "python -m simulations",
        "cdk up",
        "frobnicate",
    ],
)
def test_a_command_with_a_mistake_is_found(text):
    (block,) = blocks("page.md", f"```bash\n{text}\n```\n")
    assert [mistake(line) for line in commands(block)] != [""]


def test_a_block_that_needs_an_account_is_marked():
    assert "\n".join(unmarked(COMMANDS)) == ""
    planted = blocks("page.md", "```bash\nleeward doctor --cluster prod\n```\n")
    assert list(unmarked(planted)) == ["page.md:1: leeward doctor --cluster prod"]


def unmarked(found):
    for block in found:
        if block.account is None and block.page not in RUN_BY:
            yield from (f"{line.where}: {line.text}" for line in commands(block) if line.needs_account)


def test_a_marked_block_needs_an_account():
    """A mark of its own, not that of its page: a block that runs without an account is not hidden behind one."""
    needless = [
        block.where for block in COMMANDS if block.marked and not any(line.needs_account for line in commands(block))
    ]
    assert needless == []


def test_a_mark_covers_its_block_or_its_page():
    page = "# T\n\n<!-- account: a -->\n\n```bash\nx\n```\n\n```bash\ny\n```\n"
    assert [block.account for block in blocks("page.md", page)] == ["a", None]
    whole = "# T\n\n<!-- account: a -->\n\nProse.\n\n## S\n\n    x\n\n```bash\ny\n```\n"
    assert [block.account for block in blocks("page.md", whole)] == ["a", "a"]


def test_offline_commands_answer_about_a_stored_folder(capsys, tmp_path):
    lines = [line for line in offline() if line.leeward]
    assert len(lines) > 8
    assert "\n".join(said for line in lines if (said := answer(line, Command(capsys), tmp_path))) == ""


def offline():
    """Commands that answer about a folder: cheap, so that they are run."""
    for block in COMMANDS:
        yield from (line for line in commands(block) if "--snapshot" in line.words and block.page not in RUN_BY)


def answer(line, leeward, folder):
    """Return the difference in the answer, where the page's folder is the stored one; empty where nothing is."""
    words = []
    for before, word in zip(["", *line.leeward], line.leeward, strict=False):
        named = {"--snapshot": FOLDER, "--to": folder / "out"}.get(before) or NAMES.get(word, word)
        words.append(str(named))
    result = leeward(*words, "--now", NOON, *(["--yes"] if words[0] == "init" else []))
    missing = [shown for shown in line.shown if shown not in {"", "…"} and shown not in result.out.splitlines()]
    if result.code in {DONE, REFUSED} and not missing:
        return ""
    return f"{line.where}: {line.text}: exit code {result.code}, {result.err}, not printed: {missing}"
