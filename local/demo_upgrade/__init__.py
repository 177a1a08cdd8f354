"""Demo of a node group upgrade, watched live: pre-flight, blocking budgets, and the promises, on the local stack."""
