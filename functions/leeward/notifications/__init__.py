"""Telling the world outside the clusters: events on the account's bus for each turn that a termination takes."""
