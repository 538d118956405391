output "helm_values" {
  description = "Values for the chart karpenter, as YAML."
  value = yamlencode({
    settings = {
      clusterName       = var.cluster_name
      interruptionQueue = aws_sqs_queue.interruption.name
    }
    serviceAccount = {
      name        = var.service_account
      annotations = local.irsa ? { "eks.amazonaws.com/role-arn" = aws_iam_role.controller.arn } : {}
    }
  })
}

output "namespace" {
  description = "The namespace to install the chart in."
  value       = var.namespace
}

output "controller_role_arn" {
  description = "The controller's role."
  value       = aws_iam_role.controller.arn
}

output "node_role_name" {
  description = "For spec.role of the EC2NodeClass."
  value       = aws_iam_role.node.name
}

output "node_role_arn" {
  description = "The nodes' role."
  value       = aws_iam_role.node.arn
}

output "queue_name" {
  description = "The interruption queue, for settings.interruptionQueue."
  value       = aws_sqs_queue.interruption.name
}

output "aws_auth_role" {
  description = "The entry of mapRoles in the ConfigMap aws-auth, for clusters without access entries."
  value = {
    rolearn  = aws_iam_role.node.arn
    username = "system:node:{{EC2PrivateDNSName}}"
    groups   = ["system:bootstrappers", "system:nodes"]
  }
}
