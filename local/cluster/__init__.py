"""A Kubernetes API without Kubernetes: enough of an API server, its controllers and its kubelets for node lifecycles.

The model (`model.Cluster`) is synchronous, takes its clock and its seed from outside and knows no HTTP, so that a
simulation in virtual time can drive it; `server.ClusterServer` puts it behind TLS for `kubectl` and real clients. It
does not run containers, keep anything on disk or serve more than one version of a resource.
"""
