# The queue that announces interruptions, and the rules that fill it.

resource "aws_sqs_queue" "interruption" {
  name   = local.queue_name
  policy = data.aws_iam_policy_document.queue.json
  # What is older than five minutes announces nothing any more.
  message_retention_seconds = 300
  sqs_managed_sse_enabled   = true
  tags                      = var.tags
}

data "aws_iam_policy_document" "queue" {
  policy_id = "EC2InterruptionPolicy"

  statement {
    actions   = ["sqs:SendMessage"]
    resources = [local.queue_arn]

    principals {
      type        = "Service"
      identifiers = ["events.amazonaws.com", "sqs.amazonaws.com"]
    }
  }

  statement {
    sid       = "DenyHTTP"
    effect    = "Deny"
    actions   = ["sqs:*"]
    resources = [local.queue_arn]

    principals {
      type        = "*"
      identifiers = ["*"]
    }

    condition {
      test     = "Bool"
      variable = "aws:SecureTransport"
      values   = ["false"]
    }
  }
}

resource "aws_cloudwatch_event_rule" "interruption" {
  for_each = local.events

  # A name has 64 characters, which a long cluster name would exceed.
  name          = "Karpenter-${each.key}-${substr(sha256(var.cluster_name), 0, 12)}"
  description   = "${each.value.type}, for Karpenter in ${var.cluster_name}"
  event_pattern = jsonencode({ source = [each.value.source], detail-type = [each.value.type] })
  tags          = var.tags
}

resource "aws_cloudwatch_event_target" "interruption" {
  for_each = local.events

  rule      = aws_cloudwatch_event_rule.interruption[each.key].name
  target_id = "KarpenterInterruptionQueueTarget"
  arn       = aws_sqs_queue.interruption.arn
}
