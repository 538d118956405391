//! EKS: the cluster, and whom it lets in.

use http::StatusCode;
use serde_json::{Value, json};

use super::{Reply, epoch, text};
use crate::{refusal::Refusal, region::Region};

pub(super) fn carry_out(region: &Region, action: &str, params: &Value) -> Result<Option<Reply>, Refusal> {
    let answer = match action {
        "DescribeCluster" => cluster(region, known(region, text(params, "name")?)?),
        "ListAccessEntries" => {
            known(region, text(params, "clusterName")?)?;
            let principals: Vec<&String> = region.identity.access_entries.keys().collect();
            json!({"accessEntries": principals})
        }
        "DescribeAccessEntry" => {
            let name = known(region, text(params, "clusterName")?)?;
            access_entry(region, name, text(params, "principalArn")?)?
        }
        _ => return Ok(None),
    };
    Ok(Some(Reply::Json(answer)))
}

fn known<'a>(region: &Region, name: &'a str) -> Result<&'a str, Refusal> {
    match name == region.plan.cluster {
        true => Ok(name),
        false => Err(missing(format!("No cluster found for name: {name}."))),
    }
}

fn missing(message: String) -> Refusal {
    Refusal::new("ResourceNotFoundException", message).with_status(StatusCode::NOT_FOUND)
}

fn access_entry(region: &Region, cluster: &str, principal: &str) -> Result<Value, Refusal> {
    let entry = region.identity.access_entries.get(principal);
    let entry = entry.ok_or_else(|| missing("The specified principalArn could not be found".to_owned()))?;
    Ok(json!({"accessEntry": {
        "clusterName": cluster,
        "principalArn": principal,
        "kubernetesGroups": entry.groups,
        "username": entry.username,
        "type": entry.kind,
        "createdAt": epoch(region.made),
        "modifiedAt": epoch(region.made),
        "tags": {},
    }}))
}

fn cluster(region: &Region, name: &str) -> Value {
    let plan = &region.plan;
    let subnets: Vec<&str> = region.network.subnets.iter().map(|subnet| subnet.id.as_str()).collect();
    json!({"cluster": {
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
        "accessConfig": {"authenticationMode": "API_AND_CONFIG_MAP"},
        "status": "ACTIVE",
        "certificateAuthority": {"data": plan.authority},
        "platformVersion": "eks.1",
        "tags": {},
    }})
}
