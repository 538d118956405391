data "aws_availability_zones" "available" {
  filter {
    name   = "opt-in-status"
    values = ["opt-in-not-required"]
  }
}

locals {
  cidr  = "10.0.0.0/16"
  zones = slice(data.aws_availability_zones.available.names, 0, 3)
}

module "vpc" {
  source  = "terraform-aws-modules/vpc/aws"
  version = "~> 5.0"

  name = local.name
  cidr = local.cidr

  azs             = local.zones
  private_subnets = [for index in range(3) : cidrsubnet(local.cidr, 4, index)]
  public_subnets  = [for index in range(3) : cidrsubnet(local.cidr, 8, index + 48)]

  enable_nat_gateway = true
  single_nat_gateway = true

  public_subnet_tags = { "kubernetes.io/role/elb" = 1 }

  private_subnet_tags = {
    "kubernetes.io/role/internal-elb" = 1
    # Karpenter launches its nodes in the subnets with this tag.
    "karpenter.sh/discovery" = local.name
  }
}
