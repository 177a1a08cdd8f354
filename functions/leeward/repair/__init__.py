"""Unhealthy nodes: which are replaced, which are waited for, and why every other stays (docs/features.md, X15)."""
