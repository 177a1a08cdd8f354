"""Control plane that a kubeconfig names, in place of the emulated one: real API server, scheduler and controllers.

What such a cluster lacks is played: kubelets of the local EC2's instances, and the authentication of EKS tokens.
"""
