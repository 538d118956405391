# Controller role by Pod Identity, node role with access entry, interruption queue.
module "karpenter" {
  source = "../aws/terraform"

  cluster_name = module.eks.cluster_name
}

resource "helm_release" "karpenter" {
  name      = "karpenter"
  namespace = module.karpenter.namespace
  chart     = "${path.module}/../../charts/karpenter"
  wait      = false

  values = [
    module.karpenter.helm_values,
    file("${path.module}/values.yaml"),
  ]

  # Without its permissions the controller would start, fail and back off.
  depends_on = [module.karpenter]
}

output "configure_kubectl" {
  description = "Points kubectl at the cluster."
  value       = "aws eks --region ${local.region} update-kubeconfig --name ${module.eks.cluster_name}"
}
