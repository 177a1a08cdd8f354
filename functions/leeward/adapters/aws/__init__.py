"""EC2, Auto Scaling, Step Functions, DynamoDB, SQS, SSM and EKS behind the ports.

Each module is one port. None of them chooses what to do with an instance or a group."""
