"""Mishaps: what owners, operators, Kubernetes and AWS do to a cluster now and then beside the arrivals of its plan.

Each is a feature of a world with a random stream of its own, so that no other story changes. `playbill.py` names
them all."""
