"""Old nodes that drain next: waves, constraints, and budgets that upgrades share."""
