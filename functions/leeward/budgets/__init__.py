"""Budgets: how many nodes a policy lets be disrupted at once, and what PodDisruptionBudgets let be evicted."""
