"""Counts in sentences agree with their nouns: `1 pod`, `2 pods` (`leeward.model.counts`)."""

import ast
import re
from pathlib import Path

NOUNS = (
    "addresses|alarms|attempts|blockers|budgets|causes|claims|clusters|commands|days|executions|files|findings|groups|"
    "hooks|hours|instances|interfaces|lines|looks|messages|minutes|names|nodes|pods|policies|records|replacements|seconds|"
    "subnets|terminations|times|types|versions|violations|volumes|waves|zones"
)
PLURAL = re.compile(rf"^ (?:[a-z-]+ )?(?:{NOUNS})\b")
WRONG = re.compile(r"(?<![\w.$,/-])1 (?:[a-z]+ )?(?:pod|node|finding|command|wave|message|instance|group|pdb)s\b")
KUBERNETES = {"functions/leeward/scheduling/outcome.py"}  # as the scheduler: `0/1 nodes are available`


def uncounted(tree):
    """Numbers of f-strings that a plural follows, where the singular has no sentence of its own: `{n} pods`."""
    chosen = {id(part) for node in ast.walk(tree) if isinstance(node, ast.IfExp) for part in ast.walk(node)}
    for text in ast.walk(tree):
        if not isinstance(text, ast.JoinedStr) or id(text) in chosen:
            continue
        for value, after in zip(text.values, text.values[1:], strict=False):
            number = isinstance(value, ast.FormattedValue) and isinstance(after, ast.Constant)
            if number and PLURAL.match(after.value) and _is_a_count(value.value):
                yield text.lineno, ast.unparse(value.value)


def _is_a_count(value):
    """False for constants, which are more than one, and for names of objects: `{group} launches`."""
    named = ast.unparse(value)
    return not re.fullmatch(r"[A-Z_]+|(.*\.)?(value|name|group)|named|group|whose", named)


def test_no_sentence_of_the_product_counts_one_as_several():
    found = [
        f"{path}:{line}: {{{number}}}"
        for path in sorted(Path("functions/leeward").rglob("*.py"))
        if str(path) not in KUBERNETES
        for line, number in uncounted(ast.parse(path.read_text()))
    ]
    assert found == []


def test_no_printed_table_counts_one_as_several():
    golden = sorted(Path("tests/cli/golden").rglob("*.txt"))
    assert golden
    assert [f"{path.name}: {wrong[0]}" for path in golden for wrong in WRONG.finditer(path.read_text())] == []


def test_a_count_without_its_singular_is_seen():
    assert [number for _, number in uncounted(ast.parse("f'{len(pods)} pods evicted'"))] == ["len(pods)"]
    assert list(uncounted(ast.parse("'a pod' if n == 1 else f'{n} pods'"))) == []
