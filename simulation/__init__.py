"""Simulation of the whole system in virtual time: the product's own handlers and state machine against models of AWS
and Kubernetes.

Single-threaded and seeded: one seed gives one history. Nothing here reads a wall clock or a global random number."""
