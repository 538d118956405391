//! The inputs of the user data.

use std::{collections::BTreeMap, net::IpAddr};

use api::{
    aws::{Ami, AmiFamily, EC2NodeClass, KubeletConfiguration},
    labels,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use model::Taint;

use super::{Group, Order};
use crate::{class_view, user_data::Bootstrap};

/// What is known about the cluster that instances join.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterFacts {
    pub name: String,
    pub region: String,
    pub endpoint: String,
    pub ca_bundle: Option<String>,
    pub service_cidr: Option<String>,
    pub dns: Option<IpAddr>,
}

impl ClusterFacts {
    /// A cluster whose DNS server is not known is taken for one of IPv4.
    pub fn is_ipv6(&self) -> bool {
        self.dns.is_some_and(|dns| dns.is_ipv6())
    }
}

pub(super) fn bootstrap(group: &Group, order: Order<'_>) -> Bootstrap {
    let spec = &order.class.spec;
    let family = class_view::family(order.class);
    Bootstrap {
        cluster_name: order.cluster.name.clone(),
        cluster_endpoint: order.cluster.endpoint.clone(),
        ca_bundle: order.cluster.ca_bundle.clone(),
        service_cidr: order.cluster.service_cidr.clone(),
        kubelet: kubelet(group, order),
        labels: node_labels(&family, order),
        taints: taints(order),
        instance_store_policy: spec.instance_store_policy.clone(),
        custom: spec.user_data.clone(),
        image_version: image_version(order.class),
        family,
    }
}

/// The class's settings with pods and DNS made explicit and amounts put in place of expressions, so that the node is as
/// large as was planned.
fn kubelet(group: &Group, order: Order<'_>) -> KubeletConfiguration {
    let mut kubelet = order.class.spec.kubelet.clone().unwrap_or_default();
    if !matches!(kubelet.max_pods, Some(IntOrString::Int(_))) {
        kubelet.max_pods = Some(IntOrString::Int(i32::try_from(group.pods).unwrap_or(i32::MAX)));
    }
    kubelet.kube_reserved = in_place_of(kubelet.kube_reserved, &group.reserved.kube);
    kubelet.system_reserved = in_place_of(kubelet.system_reserved, &group.reserved.system);
    if kubelet.cluster_dns.as_ref().is_none_or(Vec::is_empty) {
        kubelet.cluster_dns = order.cluster.dns.map(|dns| vec![dns.to_string()]);
    }
    kubelet
}

/// Nothing where something was written and none of it counts.
fn in_place_of(
    written: Option<BTreeMap<String, String>>,
    resolved: &BTreeMap<String, String>,
) -> Option<BTreeMap<String, String>> {
    written.filter(|written| written.is_empty() || !resolved.is_empty())?;
    Some(resolved.clone())
}

/// Labels that the kubelet may set on its own node. Those of Kubernetes' domains it may not.
fn node_labels(family: &AmiFamily, order: Order<'_>) -> BTreeMap<String, String> {
    let own = order
        .labels
        .iter()
        .map(|(key, value)| (key.to_string(), value.to_string()));
    let mut all: BTreeMap<String, String> = own.collect();
    all.insert(labels::CAPACITY_TYPE.to_owned(), order.capacity_type.to_string());
    if *family != AmiFamily::Custom {
        all.insert(labels::DO_NOT_SYNC_TAINTS.to_owned(), "true".to_owned());
    }
    all.retain(|key, _| !is_forbidden(key));
    all
}

fn is_forbidden(key: &str) -> bool {
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    ["kubernetes.io", "k8s.io", "node-restriction.kubernetes.io"]
        .iter()
        .any(|forbidden| domain == *forbidden || domain.ends_with(&format!(".{forbidden}")))
}

fn taints(order: Order<'_>) -> Vec<Taint> {
    let mut all: Vec<Taint> = order.taints.iter().chain(order.startup_taints).cloned().collect();
    let unregistered = Taint::unregistered();
    if !all.iter().any(|taint| taint.same_kind(&unregistered)) {
        all.push(unregistered);
    }
    all
}

/// The Bottlerocket release, from wherever the class tells it: its alias, an image name to look for, or an image found.
fn image_version(class: &EC2NodeClass) -> Option<String> {
    let terms = &class.spec.ami_selector_terms;
    let alias = terms.iter().find_map(|term| term.alias.as_deref());
    if let Some((_, version)) = alias.and_then(|alias| alias.split_once('@')) {
        return Some(version.to_owned());
    }
    let wanted = terms
        .iter()
        .filter_map(|term| term.name.as_deref())
        .find_map(version_in);
    let by_id = || {
        let is_listed = |ami: &&Ami| terms.iter().any(|term| term.id.as_ref() == Some(&ami.id));
        let names = class_view::amis(class).iter().filter(is_listed);
        names.filter_map(|ami| ami.name.as_deref()).find_map(version_in)
    };
    let by_name = || {
        let names = class_view::amis(class).iter().filter_map(|ami| ami.name.as_deref());
        names.filter(|name| name.contains("bottlerocket")).find_map(version_in)
    };
    wanted.or_else(by_id).or_else(by_name)
}

/// `v1.20.1` in `bottlerocket-aws-k8s-1.30-x86_64-v1.20.1-7c3e9198`.
fn version_in(name: &str) -> Option<String> {
    let part = name.split('-').find(|part| part.starts_with('v') && part.contains('.'));
    part.map(str::to_owned)
}
