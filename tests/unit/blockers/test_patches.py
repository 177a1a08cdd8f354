"""The printed patch of a budget works: with it the disruption controller allows an eviction (policy/v1)."""

import json
import re
import shlex

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from leeward.blockers.commands import loosen
from leeward.model.pod import PodDisruptionBudget

SHARES = st.integers(0, 100).map(lambda share: f"{share}%")


def allowed(spec, expected, healthy):
    """What the disruption controller writes as `disruptionsAllowed` (pkg/controller/disruption)."""
    bound = spec["maxUnavailable"] if spec.get("maxUnavailable") is not None else spec["minAvailable"]
    pods = -(-int(bound[:-1]) * expected // 100) if isinstance(bound, str) else bound
    desired = max(expected - pods, 0) if spec.get("maxUnavailable") is not None else pods
    return max(healthy - desired, 0), desired


def patched(spec, command):
    """The spec after `kubectl patch --type merge`."""
    words = shlex.split(command)
    patch = json.loads(words[words.index("-p") + 1])["spec"]
    return {key: value for key, value in (spec | patch).items() if value is not None}


@given(
    kind=st.sampled_from(["maxUnavailable", "minAvailable"]),
    bound=st.one_of(st.integers(0, 12), SHARES),
    expected=st.integers(1, 10),
    down=st.integers(0, 9),
)
def test_with_the_patch_one_eviction_is_allowed(kind, bound, expected, down):
    healthy = expected - down
    assume(healthy > 0)
    now, desired = allowed({kind: bound}, expected, healthy)
    assume(now == 0)
    budget = PodDisruptionBudget(
        namespace="shop",
        name="web",
        selector={},
        disruptions_allowed=now,
        current_healthy=healthy,
        desired_healthy=desired,
        expected_pods=expected,
        **{"max_unavailable" if kind == "maxUnavailable" else "min_available": bound},
    )
    spec = patched({kind: bound}, loosen(budget))
    assert len(spec) == 1
    assert allowed(spec, expected, healthy)[0] == 1


@pytest.mark.parametrize(("bound", "more"), [(0, 1), (1, 2), (2, 3)])
def test_without_numbers_in_the_status_it_allows_one_more_than_now(bound, more):
    budget = PodDisruptionBudget(
        namespace="shop", name="web", selector={}, disruptions_allowed=0, max_unavailable=bound
    )
    assert re.search(rf'"maxUnavailable":{more}\b', loosen(budget))
