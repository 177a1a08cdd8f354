"""What stands in for AWS and Kubernetes on one machine: the embedded default."""
