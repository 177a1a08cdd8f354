"""Snapshot of a cluster for pure decisions: its state at one moment, gathered once, joined once."""
