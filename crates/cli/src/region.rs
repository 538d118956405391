//! What EC2 sells in a region to the pools of a cluster, by the catalog that the controller buys from.
//!
//! What the controller would find out about a class and write into its status is asked for here where nobody has: of a class
//! in a file, the subnets that it selects. Reservations are asked for in any case, because how much is left of them is
//! written nowhere.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    sync::Arc,
};

use anyhow::{Context as _, anyhow};
use api::aws::EC2NodeClass;
use clock::{Clock as _, SystemClock};
use kube::ResourceExt as _;
use model::{PoolName, pool::Pool, snapshot::Catalog as Shapes};
use operator::settings::FeatureGates;
use provider_aws::{
    catalog::{Moment, RegionCatalog},
    class_view,
    discovery::{PlacementGroups, Reservations, Subnets, reservation_status},
    error::AwsError,
    offering::overlay_prices,
    options::{Flags, Options},
    ports::PlacementGroupInfo,
};
use provider_aws_sdk::{Connected, Connection};
use provider_sim::Catalog;

use crate::{exit::Failure, input::Cluster, runtime::wait_for};

/// What each pool of the cluster can launch. A pool that can launch nothing because of its class has a note. Classes that no
/// pool uses are not looked at.
pub fn catalog(cluster: &mut Cluster, gates: &FeatureGates) -> Result<Catalog, Failure> {
    wait_for(async {
        let connected = provider_aws_sdk::connect(&Connection::default()).await;
        let connected = connected.context("--instance-types aws").map_err(Failure::Input)?;
        let shop = Shop::open(connected, gates, &mut cluster.notes).await?;
        shop.stock(cluster, gates).await
    })
}

/// The region, and whoever finds there what classes select.
struct Shop {
    catalog: RegionCatalog,
    subnets: Subnets,
    reservations: Reservations,
    placement_groups: PlacementGroups,
    reserved_capacity: bool,
}

impl Shop {
    /// Asks for types and prices.
    async fn open(connected: Connected, gates: &FeatureGates, notes: &mut Vec<String>) -> Result<Self, Failure> {
        let options = Arc::new(options()?);
        let (aws, clock) = (connected.aws, Arc::new(SystemClock));
        let reserved_capacity = gates.reserved_capacity;
        let shop = Self {
            subnets: Subnets::new(aws.ec2.clone(), clock.clone(), options.subnet_refresh_interval),
            reservations: Reservations::new(aws.ec2.clone(), clock.clone()),
            placement_groups: PlacementGroups::new(aws.ec2.clone(), clock.clone()),
            catalog: RegionCatalog::new(aws, clock, &connected.region, options, reserved_capacity),
            reserved_capacity,
        };
        let (types, prices) = tokio::join!(shop.catalog.refresh_types(), shop.catalog.refresh_prices());
        types.map_err(unreachable)?;
        if let Err(error) = prices {
            notes.push(format!(
                "some prices are those that the program was built with: {error}"
            ));
        }
        Ok(shop)
    }

    async fn stock(&self, cluster: &mut Cluster, gates: &FeatureGates) -> Result<Catalog, Failure> {
        let own_prices = match gates.node_overlay {
            true => overlay_prices(&cluster.written_overlays),
            false => BTreeMap::new(),
        };
        let classes: Result<Vec<EC2NodeClass>, _> = mem::take(&mut cluster.ec2_classes).into_iter().collect();
        let classes = classes.map_err(|bad| Failure::Input(bad.into()))?;
        let pools = cluster.snapshot.pools.values();
        let used: BTreeSet<String> = pools.map(|pool| pool.template.class.name.to_string()).collect();
        let mut buyers = BTreeMap::new();
        for class in classes.into_iter().filter(|class| used.contains(&class.name_any())) {
            buyers.insert(class.name_any(), self.buyer(class).await);
        }
        let mut stocked: Vec<(PoolName, Shapes)> = Vec::new();
        for pool in cluster.snapshot.pools.values() {
            match self.sold_to(pool, &buyers, &own_prices) {
                Ok(shapes) => stocked.push((pool.name.clone(), shapes)),
                Err(why) => cluster
                    .notes
                    .push(format!("node pool {} can launch nothing: {why}", pool.name)),
            }
        }
        Ok(Catalog::by_pool(stocked))
    }

    fn sold_to(
        &self,
        pool: &Pool,
        buyers: &BTreeMap<String, Result<Buyer, AwsError>>,
        own_prices: &BTreeMap<String, f64>,
    ) -> anyhow::Result<Shapes> {
        let class = &pool.template.class;
        let buyer = buyers
            .get(&class.name)
            .filter(|_| class.kind == provider_aws::NODE_CLASS.kind);
        let buyer = buyer.ok_or_else(|| anyhow!("{} {} is not among the objects", class.kind, class.name))?;
        let buyer = buyer.as_ref().map_err(AwsError::clone)?;
        let left = |reservation: &str| self.reservations.left(reservation);
        let moment = Moment {
            placement_group: buyer.placement_group.as_ref(),
            shifted_zones: &BTreeSet::new(),
            reservation_capacity: &left,
            own_prices,
        };
        Ok(self.catalog.of(&buyer.class, &moment)?)
    }

    /// The class, with what its controller would have found out.
    async fn buyer(&self, mut class: EC2NodeClass) -> Result<Buyer, AwsError> {
        let placement_group = match &class.spec.placement_group_selector {
            Some(selector) => self.placement_groups.of(selector).await?.group,
            None => None,
        };
        let subnets = match class_view::subnets(&class).is_empty() {
            true => Some(self.subnets.of(&class).await?),
            false => None,
        };
        let terms = class.spec.capacity_reservation_selector_terms.as_deref();
        let terms = terms.filter(|terms| self.reserved_capacity && !terms.is_empty());
        let reservations = match terms {
            Some(terms) => Some(self.reservations.of(terms).await?),
            None => None,
        };
        let now = SystemClock.now();
        let status = class.status.get_or_insert_default();
        if let Some(subnets) = subnets {
            status.subnets = Some(subnets.into_iter().map(Into::into).collect());
        }
        if let Some(found) = reservations {
            let usable = found.iter().filter_map(|info| reservation_status(info, now).ok());
            status.capacity_reservations = Some(usable.collect());
        }
        Ok(Buyer { class, placement_group })
    }
}

struct Buyer {
    class: EC2NodeClass,
    placement_group: Option<PlacementGroupInfo>,
}

/// The provider's settings, from the variables that the controller reads. What is asked for does not depend on the cluster.
fn options() -> Result<Options, Failure> {
    let flags = Flags {
        cluster_name: Some("any".to_owned()),
        ..Flags::default()
    };
    Options::resolve(&flags, |name| std::env::var(name).ok()).map_err(|error| Failure::Input(error.into()))
}

fn unreachable(error: AwsError) -> Failure {
    Failure::Unreachable(anyhow::Error::new(error).context("--instance-types aws"))
}
