"""Preparation of AWS and cluster for Leeward: its terminate hook on every selected group, subnet labels on nodes, and
the facts that steps need in the table. Never touches objects that are not its own."""
