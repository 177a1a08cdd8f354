"""Repair of unhealthy nodes: those that are replaced, those that are waited for, and why every other stays
(docs/features.md, X15)."""
