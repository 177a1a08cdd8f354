"""Rolling a node group to a new template: what goes together, what comes first, and what stands in the way."""
