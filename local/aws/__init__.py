"""The local AWS: one process on 127.0.0.1 that answers the AWS API, so that Leeward runs without an account.

ministack answers most services; EC2, Auto Scaling and EKS come from moto in the same process; this package adds
features that both lack (lifecycle hooks, LaunchInstances, task-token rules, faults) and a control API under
``/_local/``. It proves nothing about IAM, quotas or real capacity.
"""
