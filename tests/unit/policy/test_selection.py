import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.policy.document import ClusterPolicies, ClusterSettings, GroupSelector, NodePolicy


@pytest.mark.parametrize(
    ("groups", "tags", "selected"),
    [
        (("web-*",), {}, True),
        (("api-*", "web-a"), {}, True),
        (("web",), {}, False),
        (("WEB-*",), {}, False),
        ((), {"team": "web"}, True),
        ((), {"team": ""}, True),
        ((), {"team": "api"}, False),
        ((), {"team": "web", "spot": ""}, False),
        (("web-*",), {"team": "api"}, False),
        (("api-*",), {"team": "web"}, False),
        (("*",), {"team": "web"}, True),
    ],
)
def test_groups_are_ored_tags_anded_and_both_anded(groups, tags, selected):
    assert GroupSelector(groups=groups, tags=tags).selects("web-a", {"team": "web", "env": "prod"}) is selected


def test_a_name_that_holds_a_bracket_still_names_itself():
    assert GroupSelector(groups=("web[1]",)).selects("web[1]", {})


groups = st.lists(st.sampled_from(["web-*", "api-*", "*-a", "*", "web-a", "db"]), min_size=1, max_size=3).map(tuple)
tags = st.dictionaries(st.sampled_from(["team", "env"]), st.sampled_from(["", "web", "api"]), max_size=2)
policy_lists = st.lists(st.builds(GroupSelector, groups=groups, tags=tags), max_size=6).map(
    lambda selectors: [NodePolicy(name=f"p{n}", selector=selector) for n, selector in enumerate(selectors)]
)
present = st.dictionaries(st.sampled_from(["team", "env"]), st.sampled_from(["web", "api"]), max_size=2)


def selecting(policies, group, group_tags):
    return ClusterPolicies(settings=ClusterSettings(name="blue"), policies=tuple(policies)).selecting(group, group_tags)


@given(policy_lists, st.sampled_from(["web-a", "web-b", "api-a", "db", "other"]), present)
def test_the_first_policy_that_matches_wins_and_without_a_match_there_is_none(policies, group, group_tags):
    matching = [policy for policy in policies if policy.selector.selects(group, group_tags)]
    assert selecting(policies, group, group_tags) == (matching[0] if matching else None)


@given(policy_lists, st.sampled_from(["web-a", "api-a", "db"]), present)
def test_a_policy_put_last_changes_nothing_for_a_selected_group(policies, group, group_tags):
    before = selecting(policies, group, group_tags)
    last = NodePolicy(name="last", selector=GroupSelector(groups=("*",)))
    after = selecting([*policies, last], group, group_tags)
    assert after == (before or last)
