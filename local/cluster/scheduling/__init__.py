"""Scheduling of a pod: the filters of kube-scheduler's default plugins, and a simple score among the remaining nodes.

Nothing here writes to the cluster: the package reads the store and keeps an index of the placed pods (`usage`).
"""
