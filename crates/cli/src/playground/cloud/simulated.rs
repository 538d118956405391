//! Machines of no cloud in particular.

use std::{collections::BTreeMap, sync::Arc};

use provider_sim::{Catalog, Faults, SimCloud, SpotPrices};
use tokio::task::JoinSet;
use world::kubelet::AlwaysRunning;

use super::{Bill, Cloud, Ledger, Site};
use crate::controller;

/// The pool launches nodes of a size that people run: a hundred pods need several, not a hundred. They go a little while
/// after their last pod, so that a newcomer sees it happen.
pub const DEFAULTS: [&str; 2] = [
    r#"{"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}}"#,
    r#"{"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"}, "spec": {
        "disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "10s", "budgets": [{"nodes": "100%"}]},
        "limits": {"cpu": "1000"},
        "template": {"spec": {
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
            "requirements": [
                {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
                {"key": "karpenter.kwok.sh/instance-cpu", "operator": "Gt", "values": ["3"]},
                {"key": "karpenter.kwok.sh/instance-cpu", "operator": "Lt", "values": ["33"]},
                {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot", "on-demand"]}
            ]
        }}
    }}"#,
];

pub fn start(catalog: Catalog, faults: Faults, site: &Site<'_>) -> Cloud {
    let cloud = SimCloud::new(site.seed, site.clock.clone()).with_faults(faults);
    let spot_prices = catalog.spot_prices;
    Cloud {
        provided: controller::simulated(cloud.clone(), catalog, site.client),
        machines: Arc::new(AlwaysRunning),
        tasks: JoinSet::new(),
        ledger: Arc::new(Machines { cloud, spot_prices }),
        endpoint: None,
    }
}

struct Machines {
    cloud: SimCloud,
    spot_prices: SpotPrices,
}

impl Ledger for Machines {
    fn bill(&self) -> Bill {
        let mut launched: BTreeMap<String, usize> = BTreeMap::new();
        for machine in self.cloud.machines() {
            let offering = &machine.offering;
            let kind = format!("{} {}", offering.instance_type, offering.capacity_type);
            *launched.entry(kind).or_default() += 1;
        }
        Bill {
            launched,
            left: self.cloud.live().len(),
            dollars: self.cloud.spent(),
            note: self.spot_prices.note(),
        }
    }
}
