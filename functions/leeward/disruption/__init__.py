"""Voluntary disruption: selection of the nodes that may be disrupted, the reasons, and how many at once."""
