"""Pre-flight warns once of pods and nodes that opt out of disruption, with the longest end."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.upgrade.preflight.findings import Code, Severity
from leeward.upgrade.preflight.pod_checks import check_opt_outs
from tests.unit.upgrade.builders import NOON, a_node, a_pod, an_upgrade

TRUE = {"karpenter.sh/do-not-disrupt": "true"}


NODES = (a_node("n1"), a_node("n2"))


def opting(*pods, nodes=NODES, new=()):
    return list(check_opt_outs(an_upgrade(*nodes, pods=pods, new=new)))


@pytest.mark.parametrize(
    "annotations",
    [
        TRUE,
        {"leeward.dev/do-not-disrupt": "true"},
        {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"},
        {"leeward.dev/disruption-window": "0 3 * * * 1h"},
    ],
)
def test_a_pod_that_opts_out_is_a_warning_which_the_upgrade_does_not_ask(annotations):
    (finding,) = opting(a_pod("p", annotations=annotations))
    assert (finding.code, finding.severity) == (Code.OPTED_OUT, Severity.WARNING)
    assert f"pod shop/p ({next(iter(annotations))}) opt out of disruption" in finding.message
    assert "an upgrade does not ask" in finding.message
    assert "set-instance-protection" in finding.fix


def test_the_longest_end_is_named_and_how_many_have_none():
    pods = [
        a_pod(f"p{hours}", started=NOON, annotations={"leeward.dev/do-not-disrupt": f"{hours}h"}) for hours in (2, 30)
    ]
    (finding,) = opting(*pods, a_pod("forever", annotations=TRUE), a_pod("plain"))
    end = NOON + timedelta(hours=30)
    assert f"the longest until {end:%Y-%m-%dT%H:%M:%SZ} and 1 without an end" in finding.message
    assert "plain" not in finding.message


def test_a_node_that_opts_out_is_named_and_a_new_one_is_not():
    old, new = (replace(a_node(name), annotations=TRUE) for name in ("old", "new"))
    (finding,) = opting(nodes=(old, new), new=("new",))
    assert finding.message.startswith("node old (karpenter.sh/do-not-disrupt) opt out of disruption, 1 without an end")


def test_an_end_that_has_passed_and_pods_elsewhere_are_no_opt_outs():
    past = a_pod("past", started=NOON - timedelta(hours=3), annotations={"leeward.dev/do-not-disrupt": "2h"})
    assert opting(past, a_pod("elsewhere", node="other", annotations=TRUE)) == []
