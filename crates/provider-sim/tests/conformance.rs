//! The simulated provider keeps the promises of the provider trait, with and without latency.

use std::time::Duration;

use async_trait::async_trait;
use jiff::SignedDuration;
use model::{InstanceType, Offering, pool::Pool};
use provider::{CloudProvider, conformance};
use provider_sim::{Catalog, Faults, Latency, Shortage, SimProvider};

mod fixtures;

struct Subject(SimProvider);

#[async_trait]
impl conformance::Subject for Subject {
    fn provider(&self) -> &dyn CloudProvider {
        &self.0
    }

    fn pool(&self) -> Pool {
        fixtures::pool("default")
    }

    async fn wait(&self) {
        tokio::time::sleep(Duration::from_secs(5)).await;
    }

    async fn exhaust(&self, shape: &InstanceType, offering: &Offering) {
        let shortage = Shortage {
            instance_type: Some(shape.name.clone()),
            zone: Some(offering.zone.clone()),
            capacity_type: Some(offering.capacity_type),
            ..Shortage::default()
        };
        self.0.cloud().change_faults(|faults| faults.shortages.push(shortage));
    }
}

async fn check(catalog: Catalog, faults: Faults) {
    conformance::check_all(&Subject(fixtures::provider(7, catalog, faults))).await;
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_answers_at_once_conforms() {
    check(Catalog::generic(), Faults::default()).await;
}

#[tokio::test(start_paused = true)]
async fn the_embedded_catalog_conforms() {
    check(Catalog::ec2(), Faults::default()).await;
}

#[tokio::test(start_paused = true)]
async fn a_slow_cloud_conforms() {
    let faults = Faults {
        launch_latency: Latency::between(SignedDuration::from_secs(5), SignedDuration::from_secs(90)),
        termination_latency: Latency::exactly(SignedDuration::from_secs(40)),
        ..Faults::default()
    };
    check(Catalog::generic(), faults).await;
}
