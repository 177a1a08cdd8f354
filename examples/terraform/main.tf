# Leeward from a package (docs/install.md): asset and template into a bucket, the stack, then the policies by command.
#
#   terraform apply -var package=./leeward-package -var bucket=NAME -var cluster=prod \
#     -var 'node_role_arns=["arn:aws:iam::111122223333:role/prod-nodes"]'

terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.0"
    }
  }
}

variable "package" {
  description = "Folder with the files of one version, checked with sha256sum --check SHA256SUMS"
  type        = string
}

variable "leeward_version" {
  description = "Version of the package"
  type        = string
  default     = "0.1.0"
}

variable "bucket" {
  description = "S3 bucket in the Region of the clusters that holds asset and template"
  type        = string
}

variable "cluster" {
  description = "Name of the EKS cluster"
  type        = string
}

variable "node_role_arns" {
  description = "ARNs of the roles that the nodes run as"
  type        = list(string)
}

variable "policies" {
  description = "Policy file of the cluster (docs/policy.md)"
  type        = string
  default     = "policies.yaml"
}

locals {
  template = "${var.package}/leeward-${var.leeward_version}.template.json"
  asset    = jsondecode(file(local.template)).Metadata.Leeward.Asset
  prefix   = "leeward/"
}

data "aws_s3_bucket" "assets" {
  bucket = var.bucket
}

resource "aws_s3_object" "asset" {
  bucket      = data.aws_s3_bucket.assets.id
  key         = "${local.prefix}${local.asset}"
  source      = "${var.package}/${local.asset}"
  source_hash = filesha256("${var.package}/${local.asset}")
}

resource "aws_s3_object" "template" {
  bucket      = data.aws_s3_bucket.assets.id
  key         = "${local.prefix}leeward-${filesha256(local.template)}.template.json"
  source      = local.template
  source_hash = filesha256(local.template)
}

resource "aws_cloudformation_stack" "leeward" {
  name         = "Leeward"
  template_url = "https://${data.aws_s3_bucket.assets.bucket_regional_domain_name}/${aws_s3_object.template.key}"
  capabilities = ["CAPABILITY_NAMED_IAM"]

  parameters = {
    Cluster1     = var.cluster
    NodeRoleArns = join(",", var.node_role_arns)
    AssetBucket  = data.aws_s3_bucket.assets.id
    AssetPrefix  = local.prefix
  }

  depends_on = [aws_s3_object.asset]
}

resource "terraform_data" "policies" {
  triggers_replace = [filesha256(var.policies), aws_cloudformation_stack.leeward.outputs["Version"]]

  provisioner "local-exec" {
    command = "leeward policy apply \"$POLICIES\" --cluster \"$CLUSTER\" --yes"
    environment = {
      POLICIES = var.policies
      CLUSTER  = var.cluster
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
