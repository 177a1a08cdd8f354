"""What is asked of AWS without any instance: IAM's and Step Functions' own evaluation of what is deployed."""
