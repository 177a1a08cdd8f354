"""Checks on AWS without any instance: IAM's and Step Functions' own evaluation of the deployment."""
