# The module and the stack side by side, with what AWS would say of them afterwards.

terraform {
  required_providers {
    aws = {
      source = "hashicorp/aws"
    }
  }
}

variable "endpoint" {
  type = string
}

variable "deploy" {
  description = "The folder deploy/aws of this repository."
  type        = string
}

variable "controller_identity" {
  type    = string
  default = "irsa"
}

variable "node_access" {
  type    = string
  default = "aws-auth"
}

provider "aws" {
  region                      = "us-west-2"
  access_key                  = "test"
  secret_key                  = "test"
  skip_credentials_validation = true
  skip_metadata_api_check     = true
  max_retries                 = 3

  endpoints {
    cloudformation = var.endpoint
    ec2            = var.endpoint
    events         = var.endpoint
    iam            = var.endpoint
    sqs            = var.endpoint
    sts            = var.endpoint
  }
}

# An account of moto's has a VPC to begin with.
data "aws_subnets" "here" {}

data "aws_security_groups" "here" {}

# moto knows neither Pod Identity nor access entries; those are planned but not applied.
module "karpenter" {
  source = "./module"

  cluster_name                  = "by-module"
  controller_identity           = var.controller_identity
  oidc_provider_arn             = "arn:aws:iam::123456789012:oidc-provider/oidc.example.com/id/1"
  node_access                   = var.node_access
  discovered_subnet_ids         = slice(sort(data.aws_subnets.here.ids), 0, 2)
  discovered_security_group_ids = slice(sort(data.aws_security_groups.here.ids), 0, 1)
}

resource "aws_cloudformation_stack" "karpenter" {
  name          = "Karpenter-by-stack"
  template_body = file("${var.deploy}/cloudformation.yaml")
  capabilities  = ["CAPABILITY_NAMED_IAM"]

  parameters = {
    ClusterName        = "by-stack"
    ControllerIdentity = "irsa"
    OidcProvider       = "oidc.example.com/id/1"
  }
}

locals {
  clusters = ["by-module", "by-stack"]
  policies = ["NodeLifecycle", "IAMIntegration", "EKSIntegration", "Interruption", "ZonalShift", "ResourceDiscovery"]
  roles    = ["Controller", "Node"]
}

data "aws_iam_policy" "found" {
  for_each   = { for pair in setproduct(local.clusters, local.policies) : join("/", pair) => pair }
  name       = "KarpenterController${each.value[1]}Policy-${each.value[0]}"
  depends_on = [module.karpenter, aws_cloudformation_stack.karpenter]
}

data "aws_iam_role" "found" {
  for_each   = { for pair in setproduct(local.clusters, local.roles) : join("/", pair) => pair }
  name       = "Karpenter${each.value[1]}Role-${each.value[0]}"
  depends_on = [module.karpenter, aws_cloudformation_stack.karpenter]
}

data "aws_sqs_queue" "found" {
  for_each   = toset(local.clusters)
  name       = each.value
  depends_on = [module.karpenter, aws_cloudformation_stack.karpenter]
}

data "aws_subnets" "discovered" {
  filter {
    name   = "tag:karpenter.sh/discovery"
    values = ["by-module"]
  }
  depends_on = [module.karpenter]
}

data "aws_security_groups" "discovered" {
  filter {
    name   = "tag:karpenter.sh/discovery"
    values = ["by-module"]
  }
  depends_on = [module.karpenter]
}

output "found" {
  value = { for cluster in local.clusters : cluster => {
    policies = { for name in local.policies : name => jsondecode(data.aws_iam_policy.found["${cluster}/${name}"].policy) }
    trust    = { for name in local.roles : name => jsondecode(data.aws_iam_role.found["${cluster}/${name}"].assume_role_policy) }
    queue    = data.aws_sqs_queue.found[cluster].arn
  } }
}

output "subnets" {
  value = length(data.aws_subnets.discovered.ids)
}

output "security_groups" {
  value = length(data.aws_security_groups.discovered.ids)
}

output "module" {
  value = module.karpenter
}

output "stack" {
  value = aws_cloudformation_stack.karpenter.outputs
}
