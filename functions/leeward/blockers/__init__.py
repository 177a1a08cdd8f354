"""Blockers of a node, and until when: everything that holds up its drain, its disruption or its end, each with a fix.

Decides nothing about a node; it reports the conditions that would stop the packages that decide."""
