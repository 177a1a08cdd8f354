"""Keeps AWS ready for Leeward: its terminate hook on every selected group. Never touches what is not its own."""
