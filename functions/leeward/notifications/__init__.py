"""Notifications outside the clusters: events on the account's bus for each change of a termination."""
