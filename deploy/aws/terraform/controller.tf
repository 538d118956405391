# The controller's role and what it may do.

data "aws_iam_policy_document" "controller_trust" {
  lifecycle {
    precondition {
      condition     = !local.irsa || var.oidc_provider_arn != null
      error_message = "irsa needs oidc_provider_arn."
    }
  }

  dynamic "statement" {
    for_each = local.irsa ? [] : [1]

    content {
      actions = ["sts:AssumeRole", "sts:TagSession"]

      principals {
        type        = "Service"
        identifiers = ["pods.eks.amazonaws.com"]
      }
    }
  }

  dynamic "statement" {
    for_each = local.irsa ? [1] : []

    content {
      actions = ["sts:AssumeRoleWithWebIdentity"]

      principals {
        type        = "Federated"
        identifiers = [var.oidc_provider_arn]
      }

      condition {
        test     = "StringEquals"
        variable = "${replace(var.oidc_provider_arn, "/^.*:oidc-provider\\//", "")}:aud"
        values   = ["sts.amazonaws.com"]
      }

      condition {
        test     = "StringEquals"
        variable = "${replace(var.oidc_provider_arn, "/^.*:oidc-provider\\//", "")}:sub"
        values   = ["system:serviceaccount:${var.namespace}:${var.service_account}"]
      }
    }
  }
}

resource "aws_iam_role" "controller" {
  name               = local.controller_role_name
  assume_role_policy = data.aws_iam_policy_document.controller_trust.json
  tags               = var.tags
}

resource "aws_iam_policy" "controller" {
  for_each = local.policies

  name = "KarpenterController${each.key}Policy-${var.cluster_name}"
  tags = var.tags

  policy = templatefile("${path.module}/../iam/${each.value}.json", {
    Partition   = local.partition
    Region      = data.aws_region.current.name
    AccountId   = data.aws_caller_identity.current.account_id
    ClusterName = var.cluster_name
    NodeRoleArn = aws_iam_role.node.arn
    QueueArn    = aws_sqs_queue.interruption.arn
  })
}

resource "aws_iam_role_policy_attachment" "controller" {
  for_each = aws_iam_policy.controller

  role       = aws_iam_role.controller.name
  policy_arn = each.value.arn
}

resource "aws_eks_pod_identity_association" "controller" {
  count = local.irsa ? 0 : 1

  cluster_name    = var.cluster_name
  namespace       = var.namespace
  service_account = var.service_account
  role_arn        = aws_iam_role.controller.arn
  tags            = var.tags
}
