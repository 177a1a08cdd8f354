"""The rules of the simulation judge the product by the world, so they know none of its words."""

import ast
from pathlib import Path

RULES = (
    "asked",
    "cluster_rules",
    "convergence",
    "drain_times",
    "drained",
    "facts",
    "failure_causes",
    "hook_rules",
    "image_rules",
    "invariants",
    "leaving_rules",
    "liveness_rules",
    "managed_rules",
    "message_rules",
    "moves",
    "node_rules",
    "opt_out_rules",
    "pace_rules",
    "taint_times",
    "unasked_nodes",
)
OF_RECORDS = {"records", "deadline", "has", "times", "replacement", "offsets", "surges"}
DECISIONS = ("leeward.termination", "leeward.model.termination", "leeward.interruption", "leeward.adapters")


def trees():
    for name in RULES:
        yield name, ast.parse((Path("simulation") / f"{name}.py").read_text())


def test_no_rule_imports_a_decision_or_a_record_of_the_product():
    offenders = [
        f"{name}: {node.module}"
        for name, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(DECISIONS)
    ]
    assert offenders == []


def test_no_rule_reads_what_a_record_says():
    """`open_since` and `known_causes` of the view are all that a rule may know of the table."""
    offenders = [
        f"{name}:{node.lineno}: .{node.attr}"
        for name, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in OF_RECORDS
    ]
    assert offenders == []
