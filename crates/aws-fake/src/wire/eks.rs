//! EKS: the cluster.

use http::StatusCode;
use serde_json::{Value, json};

use super::{Reply, epoch, text};
use crate::{refusal::Refusal, region::Region};

pub(super) fn carry_out(region: &Region, action: &str, params: &Value) -> Result<Option<Reply>, Refusal> {
    if action != "DescribeCluster" {
        return Ok(None);
    }
    let (name, plan) = (text(params, "name")?, &region.plan);
    if name != plan.cluster {
        let message = format!("No cluster found for name: {name}.");
        return Err(Refusal::new("ResourceNotFoundException", message).with_status(StatusCode::NOT_FOUND));
    }
    let subnets: Vec<&str> = region.network.subnets.iter().map(|subnet| subnet.id.as_str()).collect();
    Ok(Some(Reply::Json(json!({"cluster": {
        "name": name,
        "arn": region.cluster_arn(),
        "createdAt": epoch(region.made),
        "version": plan.version,
        "endpoint": plan.endpoint,
        "roleArn": format!("arn:aws:iam::{}:role/eks-cluster-{name}", plan.account),
        "resourcesVpcConfig": {
            "subnetIds": subnets,
            "securityGroupIds": [],
            "clusterSecurityGroupId": region.network.groups.first().map(|group| &group.id),
            "vpcId": region.network.vpc,
            "endpointPublicAccess": true,
            "endpointPrivateAccess": true,
            "publicAccessCidrs": ["0.0.0.0/0"],
        },
        "kubernetesNetworkConfig": {"serviceIpv4Cidr": "10.100.0.0/16", "ipFamily": "ipv4"},
        "status": "ACTIVE",
        "certificateAuthority": {"data": plan.authority},
        "platformVersion": "eks.1",
        "tags": {},
    }}))))
}
