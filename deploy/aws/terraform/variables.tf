variable "cluster_name" {
  description = "The name of the EKS cluster."
  type        = string
}

variable "controller_identity" {
  description = "How the controller gets its role: pod-identity or irsa."
  type        = string
  default     = "pod-identity"

  validation {
    condition     = contains(["pod-identity", "irsa"], var.controller_identity)
    error_message = "controller_identity is pod-identity or irsa."
  }
}

variable "oidc_provider_arn" {
  description = "For irsa, the ARN of the cluster's OIDC provider."
  type        = string
  default     = null
}

variable "namespace" {
  description = "The namespace that the chart is installed in."
  type        = string
  default     = "kube-system"
}

variable "service_account" {
  description = "The service account of the controller."
  type        = string
  default     = "karpenter"
}

variable "node_access" {
  description = "How nodes may join: access-entry, or aws-auth where the output aws_auth_role is added to that ConfigMap."
  type        = string
  default     = "access-entry"

  validation {
    condition     = contains(["access-entry", "aws-auth"], var.node_access)
    error_message = "node_access is access-entry or aws-auth."
  }
}

variable "controller_role_name" {
  description = "The name of the controller's role; KarpenterControllerRole-<cluster> where null. IAM allows 64 characters."
  type        = string
  default     = null
}

variable "node_role_name" {
  description = "The name of the nodes' role; KarpenterNodeRole-<cluster> where null. IAM allows 64 characters."
  type        = string
  default     = null
}

variable "node_role_policies" {
  description = "Names of further policies of AWS for the nodes' role."
  type        = list(string)
  default     = []
}

variable "queue_name" {
  description = "The name of the interruption queue; the cluster's where null."
  type        = string
  default     = null
}

variable "discovered_subnet_ids" {
  description = "Subnets that get the tag karpenter.sh/discovery."
  type        = list(string)
  default     = []
}

variable "discovered_security_group_ids" {
  description = "Security groups that get the tag karpenter.sh/discovery."
  type        = list(string)
  default     = []
}

variable "tags" {
  description = "Tags of everything that this module makes."
  type        = map(string)
  default     = {}
}
