# What Karpenter needs in an AWS account: the same as ../cloudformation.yaml, and the discovery tags.

data "aws_partition" "current" {}
data "aws_region" "current" {}
data "aws_caller_identity" "current" {}

locals {
  partition            = data.aws_partition.current.partition
  controller_role_name = coalesce(var.controller_role_name, "KarpenterControllerRole-${var.cluster_name}")
  node_role_name       = coalesce(var.node_role_name, "KarpenterNodeRole-${var.cluster_name}")
  queue_name           = coalesce(var.queue_name, var.cluster_name)
  # Spelled out, because the queue's own policy names it.
  queue_arn = "arn:${local.partition}:sqs:${data.aws_region.current.name}:${data.aws_caller_identity.current.account_id}:${local.queue_name}"
  irsa      = var.controller_identity == "irsa"

  # Name of the policy in AWS => its document in ../iam.
  policies = {
    NodeLifecycle     = "node-lifecycle"
    IAMIntegration    = "iam-integration"
    EKSIntegration    = "eks-integration"
    Interruption      = "interruption"
    ZonalShift        = "zonal-shift"
    ResourceDiscovery = "resource-discovery"
  }

  events = {
    ScheduledChange                 = { source = "aws.health", type = "AWS Health Event" }
    SpotInterruption                = { source = "aws.ec2", type = "EC2 Spot Instance Interruption Warning" }
    Rebalance                       = { source = "aws.ec2", type = "EC2 Instance Rebalance Recommendation" }
    InstanceStateChange             = { source = "aws.ec2", type = "EC2 Instance State-change Notification" }
    CapacityReservationInterruption = { source = "aws.ec2", type = "EC2 Capacity Reservation Instance Interruption Warning" }
  }
}
