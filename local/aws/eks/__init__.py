"""EKS beyond moto: access entries, the local cluster's endpoint, and node groups whose Auto Scaling group exists."""
