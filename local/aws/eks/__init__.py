"""EKS beyond moto: access entries, the local cluster's endpoint, and node groups with a working Auto Scaling group."""
