"""Syntheses that differ in one setting each become one template with conditions, or an error."""

import json

import pytest

from infra.package.filling import filled
from infra.package.text import joined, text
from infra.package.variants import NO_VALUE, MergeConflictError, merge, merge_resources


def test_what_a_setting_adds_changes_and_removes_is_conditional():
    base = {"Name": "x", "Size": 1, "Encrypted": True}
    merged = merge(base, [("HasKey", {"Name": "x", "Size": 2, "Key": "k"})])
    assert merged == {
        "Name": "x",
        "Size": {"Fn::If": ["HasKey", 2, 1]},
        "Encrypted": {"Fn::If": ["HasKey", NO_VALUE, True]},
        "Key": {"Fn::If": ["HasKey", "k", NO_VALUE]},
    }


def test_two_settings_add_to_one_list_each_under_its_condition():
    merged = merge(["a", "b"], [("One", ["a", "x", "b"]), ("Two", ["a", "b", "y"])])
    assert merged == ["a", {"Fn::If": ["One", "x", NO_VALUE]}, "b", {"Fn::If": ["Two", "y", NO_VALUE]}]


def test_a_statement_is_recognized_by_its_id_where_a_setting_changes_it():
    base = [{"Sid": "Ours", "From": ["a"]}, {"Sid": "Others", "From": ["a"]}]
    more = [{"Sid": "Ours", "From": ["a"]}, {"Sid": "New", "From": ["b"]}, {"Sid": "Others", "From": ["a", "b"]}]
    merged = merge(base, [("More", more)])
    assert [statement.get("Sid") for statement in merged] == ["Ours", None, "Others"]
    assert merged[2]["From"] == ["a", {"Fn::If": ["More", "b", NO_VALUE]}]


def test_settings_that_change_one_value_end_the_build():
    with pytest.raises(MergeConflictError, match="One and Two both change 1"):
        merge({"Size": 1}, [("One", {"Size": 2}), ("Two", {"Size": 3})])


def test_a_resource_of_one_setting_carries_its_condition_and_none_may_be_removed():
    base = {"A": {"Type": "T"}}
    assert merge_resources(base, [("More", {**base, "B": {"Type": "U"}})])["B"] == {"Type": "U", "Condition": "More"}
    with pytest.raises(MergeConflictError, match="removes A"):
        merge_resources(base, [("Less", {})])
    with pytest.raises(MergeConflictError, match="both add B"):
        merge_resources(base, [("One", {**base, "B": {}}), ("Two", {**base, "B": {}})])


def test_a_list_in_a_text_has_the_commas_that_its_present_items_need():
    document = text({"names": ["Cluster1", "Cluster2", "Cluster4"], "all": ["Cluster3", "always"]}, lambda item: [item])
    for present in ("", "1", "2", "24", "124", "3", "1234"):
        written = "".join(_evaluated(part, present) for part in document)
        names = [f"Cluster{number}" for number in present if number != "3"]
        assert json.loads(written) == {"names": names, "all": [*(["Cluster3"] if "3" in present else []), "always"]}


def _evaluated(part, present):
    """The text of a part where these clusters are set."""
    match part:
        case {"Fn::If": [condition, yes, no]}:
            number = condition[-1]
            before = any(each < number for each in present)
            return _evaluated(
                yes if (before if condition.startswith("Follows") else number in present) else no, present
            )
        case {"Fn::Join": ["", parts]}:
            return "".join(_evaluated(each, present) for each in parts)
    return part


def test_a_cluster_in_a_key_outside_of_a_policy_document_ends_the_build():
    with pytest.raises(ValueError, match=r"kubernetes\.io/cluster/Cluster1"):
        filled({"Tags": {"kubernetes.io/cluster/Cluster1": "owned"}})


def test_logical_ids_keep_their_markers():
    assert filled({"Fn::GetAtt": ["AccessCluster1taint", "Arn"]}) == {"Fn::GetAtt": ["AccessCluster1taint", "Arn"]}
    assert filled("role of Cluster1") == joined(["role of ", {"Ref": "Cluster1"}])
