"""AWS as far as the product's ports reach: EC2, Auto Scaling, EventBridge, SQS, DynamoDB, Step Functions."""
