"""Finalizer on Nodes: `kubectl delete node` drains first and ends the instance (docs/features.md, K4, K5)."""
