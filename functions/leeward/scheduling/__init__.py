"""Scheduling simulation: whether pods would run on given nodes, and on how many new nodes of which template, by
kube-scheduler's filter rules, in memory."""
