"""Keeps AWS and cluster ready for Leeward: its terminate hook on every selected group, subnet labels on nodes, and what
steps need to know written down. Never touches what is not its own."""
