# The nodes' role, and how the cluster lets its bearers in. The controller makes the instance profile itself.

data "aws_iam_policy_document" "node_trust" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["ec2.${data.aws_partition.current.dns_suffix}"]
    }
  }
}

resource "aws_iam_role" "node" {
  name               = local.node_role_name
  assume_role_policy = data.aws_iam_policy_document.node_trust.json
  tags               = var.tags
}

resource "aws_iam_role_policy_attachment" "node" {
  for_each = toset(concat([
    "AmazonEKSWorkerNodePolicy",
    "AmazonEKS_CNI_Policy",
    "AmazonEC2ContainerRegistryPullOnly",
    "AmazonSSMManagedInstanceCore",
  ], var.node_role_policies))

  role       = aws_iam_role.node.name
  policy_arn = "arn:${local.partition}:iam::aws:policy/${each.value}"
}

resource "aws_eks_access_entry" "node" {
  count = var.node_access == "access-entry" ? 1 : 0

  cluster_name  = var.cluster_name
  principal_arn = aws_iam_role.node.arn
  type          = "EC2_LINUX"
  tags          = var.tags
}

# Karpenter finds subnets and security groups by this tag; count rather than for_each, as ids may be unknown at first.
resource "aws_ec2_tag" "subnet" {
  count = length(var.discovered_subnet_ids)

  resource_id = var.discovered_subnet_ids[count.index]
  key         = "karpenter.sh/discovery"
  value       = var.cluster_name
}

resource "aws_ec2_tag" "security_group" {
  count = length(var.discovered_security_group_ids)

  resource_id = var.discovered_security_group_ids[count.index]
  key         = "karpenter.sh/discovery"
  value       = var.cluster_name
}
