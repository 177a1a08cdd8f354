"""Rolling a node group, watched live: pre-flight, budgets in the way, and what was promised, on the local stack."""
