"""Drift: nodes that differ from the nodes that their group would launch now, field by field, and the fix."""
