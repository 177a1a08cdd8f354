# Deploys a released template of Leeward. The runner needs the AWS provider alone: no clone, no leeward, no file.

terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.0"
    }
  }
}

variable "template_url" {
  description = "HTTPS address of the template in S3; its asset is in asset_bucket, in the stack's Region"
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^https://.+[.]json$", var.template_url))
    error_message = "template_url is not an https address of a .json file."
  }
}

variable "stack_name" {
  description = "Name of the CloudFormation stack"
  type        = string
  default     = "Leeward"
  nullable    = false
}

variable "tags" {
  description = "Tags of the stack, which CloudFormation gives to its resources"
  type        = map(string)
  default     = {}
  nullable    = false
}

resource "aws_cloudformation_stack" "leeward" {
  name         = var.stack_name
  template_url = var.template_url
  capabilities = ["CAPABILITY_NAMED_IAM"]
  tags         = var.tags

  parameters = {
    Cluster1           = var.cluster1
    Cluster2           = var.cluster2
    Cluster3           = var.cluster3
    Cluster4           = var.cluster4
    Cluster5           = var.cluster5
    Cluster6           = var.cluster6
    Cluster7           = var.cluster7
    Cluster8           = var.cluster8
    NodeRoleArns       = join(",", var.node_role_arns)
    ImageParameterArns = join(",", var.image_parameter_arns)
    AssetBucket        = var.asset_bucket
    AssetPrefix        = var.asset_prefix
    SubnetIds          = join(",", var.subnet_ids)
    SecurityGroupIds   = join(",", var.security_group_ids)
    AlarmTopicArn      = var.alarm_topic_arn
    RunbooksUrl        = var.runbooks_url
    LogLevel           = var.log_level
    ReserveConcurrency = tostring(var.reserve_concurrency)
    AccessEntries      = tostring(var.access_entries)
    KmsKeyArn          = var.kms_key_arn
    SenderRoleArns     = join(",", var.sender_role_arns)
    SenderTopicArns    = join(",", var.sender_topic_arns)
  }

  lifecycle {
    precondition {
      condition     = anytrue([for name in [var.cluster1, var.cluster2, var.cluster3, var.cluster4, var.cluster5, var.cluster6, var.cluster7, var.cluster8] : name != ""])
      error_message = "Set one of cluster1 to cluster8."
    }
  }
}

output "version" {
  description = "Version that is deployed"
  value       = aws_cloudformation_stack.leeward.outputs["Version"]
}

output "queue_arn" {
  description = "Target of lifecycle hooks of your own"
  value       = aws_cloudformation_stack.leeward.outputs["QueueArn"]
}

output "stack_id" {
  description = "ARN of the CloudFormation stack"
  value       = aws_cloudformation_stack.leeward.id
}
