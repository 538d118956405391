//! EKS, Systems Manager and the zonal shift of ARC: what AWS knows about the cluster as a whole.

use async_trait::async_trait;
use aws_sdk_arczonalshift::types::{AppliedStatus, ZonalShiftInResource};
use aws_sdk_eks::types::Cluster;
use provider_aws::{
    error::AwsError,
    ports::{AccessEntryInfo, ClusterInfo, Eks, Shift, Ssm, ZonalShift},
};

use crate::{
    refusal::{incomplete, refused},
    words::{all, timestamp},
};

pub(crate) struct SdkEks(pub aws_sdk_eks::Client);

#[async_trait]
impl Eks for SdkEks {
    async fn cluster(&self, name: &str) -> Result<ClusterInfo, AwsError> {
        let answer = self.0.describe_cluster().name(name).send().await.map_err(refused)?;
        answer.cluster.map(cluster).ok_or_else(|| incomplete("cluster"))
    }

    async fn access_entries(&self, cluster: &str) -> Result<Vec<String>, AwsError> {
        let request = self.0.list_access_entries().cluster_name(cluster);
        all(request.into_paginator().items().send(), |principal| principal).await
    }

    async fn access_entry(&self, cluster: &str, principal: &str) -> Result<AccessEntryInfo, AwsError> {
        let request = self.0.describe_access_entry().cluster_name(cluster);
        let answer = request.principal_arn(principal).send().await.map_err(refused)?;
        let entry = answer.access_entry.ok_or_else(|| incomplete("accessEntry"))?;
        Ok(AccessEntryInfo {
            kind: entry.r#type.unwrap_or_default(),
            groups: entry.kubernetes_groups.unwrap_or_default(),
        })
    }
}

fn cluster(cluster: Cluster) -> ClusterInfo {
    let network = cluster.kubernetes_network_config;
    let (service_cidr_v4, service_cidr_v6) = network
        .map(|network| (network.service_ipv4_cidr, network.service_ipv6_cidr))
        .unwrap_or_default();
    let mode = cluster.access_config.and_then(|config| config.authentication_mode);
    ClusterInfo {
        arn: cluster.arn.unwrap_or_default(),
        endpoint: cluster.endpoint.unwrap_or_default(),
        version: cluster.version.unwrap_or_default(),
        service_cidr_v4,
        service_cidr_v6,
        authentication_mode: mode.map(|mode| mode.as_str().to_owned()),
    }
}

pub(crate) struct SdkSsm(pub aws_sdk_ssm::Client);

#[async_trait]
impl Ssm for SdkSsm {
    async fn parameter(&self, name: &str) -> Result<String, AwsError> {
        let answer = self.0.get_parameter().name(name).send().await.map_err(refused)?;
        let value = answer.parameter.and_then(|parameter| parameter.value);
        value.ok_or_else(|| incomplete("value"))
    }
}

pub(crate) struct SdkZonalShift(pub aws_sdk_arczonalshift::Client);

#[async_trait]
impl ZonalShift for SdkZonalShift {
    async fn shifts(&self, cluster_arn: &str) -> Result<Vec<Shift>, AwsError> {
        let request = self.0.get_managed_resource().resource_identifier(cluster_arn);
        let answer = request.send().await.map_err(refused)?;
        Ok(answer.zonal_shifts.into_iter().filter_map(shift).collect())
    }
}

/// A shift that never ends, or ends at no time, is none: AWS sets an end to each.
fn shift(shift: ZonalShiftInResource) -> Option<Shift> {
    Some(Shift {
        away_from: shift.away_from,
        expires: timestamp(shift.expiry_time)?,
        applied: shift.applied_status == AppliedStatus::Applied,
    })
}
