# Parameters of the template, with its types, defaults and patterns. tests/examples/test_terraform_module.py compares them.

variable "cluster1" {
  description = "Name of an EKS cluster, at most 33 characters. A cluster keeps its parameter: empty the parameter of one that leaves, and move no other"
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^([0-9A-Za-z][0-9A-Za-z_-]{0,32})?$", var.cluster1))
    error_message = "A value of cluster1 does not match the pattern of the template's parameter Cluster1."
  }
}

variable "cluster2" {
  description = "Name of an EKS cluster, at most 33 characters. A cluster keeps its parameter: empty the parameter of one that leaves, and move no other"
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^([0-9A-Za-z][0-9A-Za-z_-]{0,32})?$", var.cluster2))
    error_message = "A value of cluster2 does not match the pattern of the template's parameter Cluster2."
  }
}

variable "cluster3" {
  description = "Name of an EKS cluster, at most 33 characters. A cluster keeps its parameter: empty the parameter of one that leaves, and move no other"
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^([0-9A-Za-z][0-9A-Za-z_-]{0,32})?$", var.cluster3))
    error_message = "A value of cluster3 does not match the pattern of the template's parameter Cluster3."
  }
}

variable "cluster4" {
  description = "Name of an EKS cluster, at most 33 characters. A cluster keeps its parameter: empty the parameter of one that leaves, and move no other"
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^([0-9A-Za-z][0-9A-Za-z_-]{0,32})?$", var.cluster4))
    error_message = "A value of cluster4 does not match the pattern of the template's parameter Cluster4."
  }
}

variable "cluster5" {
  description = "Name of an EKS cluster, at most 33 characters. A cluster keeps its parameter: empty the parameter of one that leaves, and move no other"
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^([0-9A-Za-z][0-9A-Za-z_-]{0,32})?$", var.cluster5))
    error_message = "A value of cluster5 does not match the pattern of the template's parameter Cluster5."
  }
}

variable "cluster6" {
  description = "Name of an EKS cluster, at most 33 characters. A cluster keeps its parameter: empty the parameter of one that leaves, and move no other"
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^([0-9A-Za-z][0-9A-Za-z_-]{0,32})?$", var.cluster6))
    error_message = "A value of cluster6 does not match the pattern of the template's parameter Cluster6."
  }
}

variable "cluster7" {
  description = "Name of an EKS cluster, at most 33 characters. A cluster keeps its parameter: empty the parameter of one that leaves, and move no other"
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^([0-9A-Za-z][0-9A-Za-z_-]{0,32})?$", var.cluster7))
    error_message = "A value of cluster7 does not match the pattern of the template's parameter Cluster7."
  }
}

variable "cluster8" {
  description = "Name of an EKS cluster, at most 33 characters. A cluster keeps its parameter: empty the parameter of one that leaves, and move no other"
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^([0-9A-Za-z][0-9A-Za-z_-]{0,32})?$", var.cluster8))
    error_message = "A value of cluster8 does not match the pattern of the template's parameter Cluster8."
  }
}

variable "node_role_arns" {
  description = "ARNs of the roles that your nodes run as; a launch can pass no other role to EC2"
  type        = list(string)
  nullable    = false

  validation {
    condition     = length(var.node_role_arns) > 0 && alltrue([for item in var.node_role_arns : can(regex("^(arn:aws[a-z-]*:iam::\\d{12}:role/[\\w+=,.@/-]+)$", item))])
    error_message = "A value of node_role_arns does not match the pattern of the template's parameter NodeRoleArns."
  }
}

variable "image_parameter_arns" {
  description = "ARNs of your SSM parameters by which launch templates name an image"
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for item in var.image_parameter_arns : can(regex("^(arn:aws[a-z-]*:ssm:[a-z0-9-]*:\\d{12}:parameter/[\\w./-]+\\*?)?$", item))])
    error_message = "A value of image_parameter_arns does not match the pattern of the template's parameter ImageParameterArns."
  }
}

variable "asset_bucket" {
  description = "S3 bucket in this Region that holds the Lambda asset"
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])$", var.asset_bucket))
    error_message = "A value of asset_bucket does not match the pattern of the template's parameter AssetBucket."
  }
}

variable "asset_prefix" {
  description = "Folder of the asset in the bucket, empty or ending with /; the file's name is the template's"
  type        = string
  default     = "leeward/"
  nullable    = false

  validation {
    condition     = can(regex("^([\\w./-]*/)?$", var.asset_prefix))
    error_message = "A value of asset_prefix does not match the pattern of the template's parameter AssetPrefix."
  }
}

variable "subnet_ids" {
  description = "Subnets of the functions that call Kubernetes"
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for item in var.subnet_ids : can(regex("^(subnet-([0-9a-f]{8}|[0-9a-f]{17}))?$", item))])
    error_message = "A value of subnet_ids does not match the pattern of the template's parameter SubnetIds."
  }
}

variable "security_group_ids" {
  description = "Security groups of these functions"
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for item in var.security_group_ids : can(regex("^(sg-([0-9a-f]{8}|[0-9a-f]{17}))?$", item))])
    error_message = "A value of security_group_ids does not match the pattern of the template's parameter SecurityGroupIds."
  }
}

variable "alarm_topic_arn" {
  description = "SNS topic that receives the alarms and their ends"
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^(arn:aws[a-z-]*:sns:[a-z0-9-]+:\\d{12}:.+)?$", var.alarm_topic_arn))
    error_message = "A value of alarm_topic_arn does not match the pattern of the template's parameter AlarmTopicArn."
  }
}

variable "runbooks_url" {
  description = "Page with the runbooks, to whose sections the alarms' descriptions link"
  type        = string
  default     = "docs/runbooks.md"
  nullable    = false

  validation {
    condition     = can(regex("^(docs/runbooks\\.md|https?://[^\\s#]{1,200})?$", var.runbooks_url))
    error_message = "A value of runbooks_url does not match the pattern of the template's parameter RunbooksUrl."
  }
}

variable "log_level" {
  description = "Of the functions' logs"
  type        = string
  default     = "INFO"
  nullable    = false

  validation {
    condition     = contains(["DEBUG", "INFO", "WARNING", "ERROR"], var.log_level)
    error_message = "The value of log_level is not an allowed value of the template's parameter LogLevel."
  }
}

variable "reserve_concurrency" {
  description = "true reserves 12 concurrent executions for interruptions and 40 for drains; false in an account whose quota is too small for that"
  type        = bool
  default     = true
  nullable    = false
}

variable "access_entries" {
  description = "false where the clusters' access is arranged elsewhere (aws-auth)"
  type        = bool
  default     = true
  nullable    = false
}

variable "kms_key_arn" {
  description = "KMS key of yours in this Region for logs, table, queues and environment"
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^(arn:aws[a-z-]*:kms:[a-z0-9-]+:\\d{12}:key/(mrk-[0-9a-f]{32}|[0-9a-f-]{36}))?$", var.kms_key_arn))
    error_message = "A value of kms_key_arn does not match the pattern of the template's parameter KmsKeyArn."
  }
}

variable "sender_role_arns" {
  description = "Roles that may put messages into the interruption queue"
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for item in var.sender_role_arns : can(regex("^(arn:aws[a-z-]*:iam::\\d{12}:role/[\\w+=,.@/-]+)?$", item))])
    error_message = "A value of sender_role_arns does not match the pattern of the template's parameter SenderRoleArns."
  }
}

variable "sender_topic_arns" {
  description = "SNS topics that may put lifecycle notifications into the interruption queue"
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for item in var.sender_topic_arns : can(regex("^(arn:aws[a-z-]*:sns:[a-z0-9-]+:\\d{12}:.+)?$", item))])
    error_message = "A value of sender_topic_arns does not match the pattern of the template's parameter SenderTopicArns."
  }
}
