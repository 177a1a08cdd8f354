"""Where a pod may run: the filters of kube-scheduler's default plugins, and a simple score among what is left.

Pure towards the cluster: everything here reads the store and what is known of placed pods, and writes nothing.
"""
