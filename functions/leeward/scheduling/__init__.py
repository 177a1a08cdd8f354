"""Would these pods run there, and on how many new nodes of which template: kube-scheduler's filter rules, in memory."""
