"""The policy that a new cluster starts from: careful, and right in what it only suggests."""

import re

import pytest

from leeward.adapters.folder.policy_files import load_policies
from tests.infra.conftest import ROOT

FILE = ROOT / "policies" / "default.yaml"


def test_it_interrupts_gracefully_and_removes_no_node_that_runs_well():
    (policy,) = load_policies([FILE], "demo").policies
    assert policy.interruption.enabled
    assert policy.selector.groups == ("*",)
    assert (policy.disruption.consolidation_policy, policy.disruption.drift) == ("Never", False)
    assert policy.disruption.expire_after is None
    assert not policy.repair.enabled
    assert not policy.drain.force


@pytest.mark.parametrize(
    "suggested", ["hooks: ", "terminationGracePeriod: ", "repair: ", "disruption:", "kind: ClusterSettings"]
)
def test_what_it_suggests_in_comments_would_be_accepted(suggested, tmp_path):
    text = FILE.read_text()
    assert f"# {suggested}" in text
    policy, _, settings = text.partition("# ---\n")
    if suggested == "kind: ClusterSettings":
        document = "\n".join(line.removeprefix("# ") for line in settings.splitlines()[1:])
        text = f"{policy}---\n{document}\n"
    elif suggested == "disruption:":  # the section, with the lines below it
        head, _, rest = policy.partition("  # disruption:\n")
        section, blank, rest = rest.partition("\n\n")
        opened = "\n".join(line.replace("  # ", "  ", 1) for line in section.splitlines())
        text = f"{head}  disruption:\n{opened}{blank}{rest}"
    else:
        text = re.sub(rf"^(\s*)# {re.escape(suggested)}", rf"\g<1>{suggested}", policy, flags=re.MULTILINE)
    changed = tmp_path / "default.yaml"
    changed.write_text(text)
    before, after = load_policies([FILE], "demo"), load_policies([changed], "demo")
    assert after != before
