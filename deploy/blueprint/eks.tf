module "eks" {
  source  = "terraform-aws-modules/eks/aws"
  version = "~> 20.24"

  cluster_name    = local.name
  cluster_version = "1.33"

  enable_cluster_creator_admin_permissions = true
  cluster_endpoint_public_access           = true

  vpc_id     = module.vpc.vpc_id
  subnet_ids = module.vpc.private_subnets

  cluster_addons = {
    coredns = {
      # DNS has to run before there is any other node; without this toleration neither it nor Karpenter would ever start.
      configuration_values = jsonencode({
        tolerations = [{ key = "karpenter.sh/controller", value = "true", effect = "NoSchedule" }]
      })
    }
    eks-pod-identity-agent = {}
    kube-proxy             = {}
    vpc-cni                = {}
  }

  eks_managed_node_groups = {
    karpenter = {
      ami_type       = "AL2023_x86_64_STANDARD"
      instance_types = ["m5.large"]

      min_size     = 2
      max_size     = 3
      desired_size = 2

      # Keeps Karpenter on these nodes ...
      labels = { "karpenter.sh/controller" = "true" }

      # ... and everything else off them.
      taints = {
        karpenter = { key = "karpenter.sh/controller", value = "true", effect = "NO_SCHEDULE" }
      }
    }
  }

  node_security_group_tags = { "karpenter.sh/discovery" = local.name }
}
