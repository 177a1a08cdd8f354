"""Scheduling of a pod: the filters of kube-scheduler's default plugins, and a simple score among the remaining nodes.

Pure towards the cluster: everything here reads the store and the index of placed pods, and writes nothing.
"""
