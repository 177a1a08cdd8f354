"""Voluntary disruption: which nodes may go, why, and how many at once."""
