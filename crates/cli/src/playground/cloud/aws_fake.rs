//! An AWS region on this machine, with the AWS provider in front of it.
//!
//! The provider calls the region in process, so that time can run as fast as the playground's. The region is on a port, too:
//! for the AWS CLI, and for its control page.

use std::{collections::BTreeMap, sync::Arc};

use anyhow::Context as _;
use aws_fake::{
    Fake,
    control::Command,
    join::{self, Instances},
    region::{
        Plan,
        instances::{Instance, State},
        market::Market,
    },
    server::{self, Served},
};
use jiff::Timestamp;
use operator::settings::Settings;
use provider_aws::options::Options;
use provider_aws_sdk::Connection;
use tokio::task::JoinSet;

use super::{Bill, Cloud, Ledger, Site};
use crate::{
    aws::{self, Surroundings},
    exit::Failure,
};

const REGION: &str = "us-west-2";
const CLUSTER: &str = "playground";
const SECONDS_PER_HOUR: f64 = 3600.0;

/// As the getting-started text has them, except that nodes go sooner.
pub const DEFAULTS: [&str; 2] = [
    r#"{"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default"}, "spec": {
        "role": "KarpenterNodeRole-playground",
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "playground"}}],
        "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "playground"}}]
    }}"#,
    r#"{"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"}, "spec": {
        "disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "10s", "budgets": [{"nodes": "100%"}]},
        "limits": {"cpu": "1000"},
        "template": {"spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            "expireAfter": "720h",
            "requirements": [
                {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
                {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
                {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot", "on-demand"]},
                {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["c", "m", "r"]},
                {"key": "karpenter.k8s.aws/instance-generation", "operator": "Gt", "values": ["2"]}
            ]
        }}
    }}"#,
];

pub async fn start(orders: Vec<Command>, site: &Site<'_>) -> Result<Cloud, Failure> {
    let fake = Fake::new(Plan::new(REGION, CLUSTER), site.clock.clone());
    for order in orders {
        let done = fake.with(|state, now| order.carry_out(state, now));
        done.context("an order to the region").map_err(Failure::Input)?;
    }
    let served = server::serve(fake.clone(), 0).await;
    let served = served.context("the region has no port").map_err(Failure::No)?;
    let own = fake.clone();
    let connected = provider_aws_sdk::in_process(REGION, &Connection::default(), move |request| {
        let fake = own.clone();
        async move { server::respond(&fake, &request).await }
    });
    let connected = connected.context("AWS").map_err(Failure::No)?;
    let options = Options {
        interruption_queue: Some(CLUSTER.to_owned()),
        ..Options::for_cluster(CLUSTER)
    };
    let surroundings = Surroundings {
        client: site.client.clone(),
        // Simulated nodes do not look whom they speak to.
        ca_certificate: Some(CLUSTER.into()),
        clock: site.clock.clone(),
    };
    let provided = aws::assemble(connected, Arc::new(options), &Settings::default(), surroundings).await;
    let provided = provided.context("the region").map_err(Failure::No)?;
    let mut tasks = JoinSet::new();
    tasks.spawn(join::run(fake.clone(), site.client.clone()));
    let endpoint = served.endpoint();
    Ok(Cloud {
        provided,
        machines: Arc::new(Instances(fake.clone())),
        tasks,
        ledger: Arc::new(Account { fake, _served: served }),
        endpoint: Some(endpoint),
    })
}

struct Account {
    fake: Fake,
    _served: Served,
}

impl Ledger for Account {
    fn bill(&self) -> Bill {
        self.fake.with(|state, now| {
            let mut launched: BTreeMap<String, usize> = BTreeMap::new();
            let mut bill = (0, 0.0);
            for instance in state.region.instances.values() {
                let kind = format!("{} {}", instance.fact.name, instance.capacity.lifecycle());
                *launched.entry(kind).or_default() += 1;
                bill.0 += usize::from(matches!(instance.state(now), State::Pending | State::Running));
                bill.1 += cost(instance, &state.region.market, now);
            }
            Bill {
                launched,
                left: bill.0,
                dollars: bill.1,
                note: Some("spot prices are made up: 0.3 to 0.6 of the on-demand price"),
            }
        })
    }
}

/// By the second, at the present price.
fn cost(instance: &Instance, market: &Market, now: Timestamp) -> f64 {
    let end = instance.end.as_ref().map_or(now, |end| end.shutting_down_at.min(now));
    let hours = end.duration_since(instance.launched).as_secs_f64() / SECONDS_PER_HOUR;
    market.price(&instance.fact, &instance.zone, instance.capacity) * hours
}
