"""What the documentation names exists, and what operators can see is documented."""

import importlib
import importlib.util
import re
from pathlib import Path

from tests.architecture.metrics import METRICS

FEATURES = Path("docs/features.md").read_text()
ROWS = re.findall(r"^\| ([A-Z]\d+) \| (.+) \| (\w+)(?: \(.*\))? \|$", FEATURES, re.MULTILINE)
FEATURES_PROOF = Path("tests/features.md").read_text()
PROOFS = re.findall(r"^\| ([A-Z]\d+) \| (.*) \|$", FEATURES_PROOF, re.MULTILINE)
DEFECTS = Path("docs/comparison.md").read_text()
NAMED_TESTS = re.findall(r"`(tests/[^`]+)`", FEATURES + FEATURES_PROOF + DEFECTS)


def test_every_metric_is_in_the_reference_of_metrics():
    reference = Path("docs/reference/metrics.md").read_text()
    assert all(METRICS.values())
    assert [name for names in METRICS.values() for name in names if f"`{name}`" not in reference] == []


def test_every_row_of_the_mission_has_a_line():
    expected = {"U": 16, "V": 3, "S": 9, "K": 18, "C": 7, "D": 5, "X": 26}
    ids = [f"{letter}{n}" for letter, count in expected.items() for n in range(1, count + 1)]
    assert [row[0] for row in ROWS] == ids
    assert [row[0] for row in PROOFS] == ids


def test_a_row_is_open_partly_or_done_and_done_rows_name_their_test():
    proofs = dict(PROOFS)
    for row, _, state in ROWS:
        assert state in {"open", "partly", "done"}, row
        assert state == "open" or "`tests/" in proofs[row], row


def test_every_defect_of_others_names_its_test():
    tables = DEFECTS.partition("\n## Defects of others")[2]
    rows = [line for line in tables.splitlines() if line.startswith("| ") and not line.startswith("| defect")]
    assert rows
    assert not [row for row in rows if not re.search(r"\| `tests/[^`]+::test_[^`]+`.* \|$", row)]


def exists(name):
    path, _, function = name.partition("::")
    return Path(path).exists() and (not function or f"def {function}(" in Path(path).read_text())


def test_a_test_that_is_named_exists():
    assert NAMED_TESTS
    assert sorted(name for name in set(NAMED_TESTS) if not exists(name)) == []


def test_links_between_pages_lead_somewhere():
    pages = sorted([*Path("docs").rglob("*.md"), Path("README.md"), Path("CONTRIBUTING.md"), Path("SECURITY.md")])
    assert [
        f"{page}: {target}"
        for page in pages
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text())
        if not (page.parent / target).exists()
    ] == []


def test_every_file_of_the_walks_through_the_code_exists():
    """CONTRIBUTING.md names the files in the order of the calls."""
    walks = Path("CONTRIBUTING.md").read_text().partition("### Where to begin reading")[2].partition("\n## ")[0]
    package, missing = "", []
    for step in re.findall(r"(?m)^\d+\. .*$", walks):
        for name in re.findall(r"`([\w./]+\.(?:py|yaml))`", step):
            package = name.rpartition("/")[0] or package
            file = name if "/" in name else f"{package}/{name}"
            if not Path("functions/leeward", file).exists():
                missing.append(file)
    assert not missing


def test_a_walk_has_ten_steps_at_most():
    walks = Path("CONTRIBUTING.md").read_text().partition("### Where to begin reading")[2].partition("\n## ")[0]
    assert max(int(number) for number in re.findall(r"(?m)^(\d+)\. ", walks)) <= 10


def test_every_file_and_folder_that_the_architecture_names_exists():
    layout = Path("CONTRIBUTING.md").read_text().partition("## How the code is laid out")[2].partition("\n## ")[0]
    page = Path("docs/architecture.md").read_text() + layout
    names = sorted(
        {name for name in re.findall(r"`([\w./-]+)`", page) if "/" in name.strip("/") or name.endswith(".py")}
    )
    known = {path.name for folder in ("functions", "infra", "simulation") for path in Path(folder).rglob("*")}
    missing = [name for name in names if "/" not in name and name not in known]
    roots = [Path(), Path("docs"), Path("functions"), Path("functions/leeward")]
    missing += [name for name in names if "/" in name and not any((root / name).exists() for root in roots)]
    assert names
    assert missing == []


def test_every_dotted_name_of_the_architecture_exists():
    pages = (Path("docs/architecture.md"), Path("CONTRIBUTING.md"))
    names = re.findall(r"`(leeward(?:\.\w+)+)`", "".join(page.read_text() for page in pages))
    assert [name for name in names if importlib.util.find_spec(name) is None] == []
