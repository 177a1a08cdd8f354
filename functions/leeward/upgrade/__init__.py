"""Rolling upgrade of a node group to a new template: waves, launches ahead of the drains, and what blocks the
upgrade."""
