//! Everything that the provider and the controllers of the class share: one of each, over the same ports.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::aws::{EC2NodeClass, PlacementGroupSelector};
use clock::Clock;
use model::{InstanceType, Requirements};
use parking_lot::RwLock;

use crate::{
    catalog::{CatalogError, Moment, RegionCatalog},
    class_status::Resolver,
    class_view,
    discovery::{
        Images, Parameters, PlacementGroups, Profiles, Reservations, SecurityGroups, Subnets, Version, ZonalShifts,
    },
    error::AwsError,
    fleets::Fleets,
    inheritance::{Inheritance, Owners},
    instances::Instances,
    launch::template::ClusterFacts,
    metrics::AwsMetrics,
    offering::OfferingSource,
    options::Options,
    ports::{Aws, PlacementGroupInfo},
    templates::Templates,
};

/// What is known once the program has looked around.
#[derive(Clone)]
pub struct Foundation {
    pub aws: Aws,
    pub clock: Arc<dyn Clock>,
    pub options: Arc<Options>,
    /// The service CIDR is learnt later, by those who need it.
    pub cluster: ClusterFacts,
    /// Set where zones that the cluster is shifted out of are to be avoided.
    pub shifted_cluster: Option<String>,
    pub version: Version,
    pub reserved_capacity: bool,
    /// Whether a launch keeps the variety of types that a claim asks for, even if it then fails.
    pub strict_min_values: bool,
    /// Whether node overlays are in force.
    pub node_overlay: bool,
    /// Whoever sells beside EC2.
    pub offering_sources: Vec<Arc<dyn OfferingSource>>,
}

pub struct Services {
    pub aws: Aws,
    pub clock: Arc<dyn Clock>,
    pub options: Arc<Options>,
    pub region: String,
    pub reserved_capacity: bool,
    pub strict_min_values: bool,
    pub node_overlay: bool,
    pub catalog: RegionCatalog,
    pub templates: Templates,
    pub fleets: Fleets,
    pub instances: Arc<Instances>,
    /// Whom instances were given to, until their tags tell.
    pub owners: Arc<Owners>,
    pub inheritance: Inheritance,
    pub resolver: Resolver,
    pub zonal_shifts: Arc<ZonalShifts>,
    pub metrics: AwsMetrics,
    cluster: RwLock<ClusterFacts>,
    version: RwLock<Version>,
    zone_names: Arc<RwLock<BTreeMap<String, String>>>,
}

impl Services {
    pub fn new(foundation: Foundation) -> Self {
        let Foundation {
            aws,
            clock,
            options,
            cluster,
            shifted_cluster,
            version,
            reserved_capacity,
            strict_min_values,
            node_overlay,
            offering_sources,
        } = foundation;
        let region = cluster.region.clone();
        let name = &options.cluster_name;
        let (ec2, at) = (|| aws.ec2.clone(), || clock.clone());
        let zonal_shifts = Arc::new(ZonalShifts::new(aws.zonal_shift.clone(), shifted_cluster, at()));
        let zone_names = Arc::<RwLock<BTreeMap<String, String>>>::default();
        let owners = Arc::<Owners>::default();
        let resolver = Resolver {
            images: Images::new(
                ec2(),
                Parameters::new(aws.ssm.clone(), at()),
                at(),
                options.ami_refresh_interval,
            ),
            subnets: Arc::new(Subnets::new(ec2(), at(), options.subnet_refresh_interval)),
            security_groups: SecurityGroups::new(ec2(), at()),
            reservations: Arc::new(Reservations::new(ec2(), at())),
            placement_groups: Arc::new(PlacementGroups::new(ec2(), at())),
            profiles: Arc::new(Profiles::new(aws.iam.clone(), at(), &region, name)),
            clock: at(),
            options: options.clone(),
            region: region.clone(),
            reserved_capacity,
        };
        Self {
            catalog: RegionCatalog::new(aws.clone(), at(), &region, options.clone(), reserved_capacity)
                .with_sources(offering_sources),
            templates: Templates::new(ec2(), at(), name),
            fleets: Fleets::new(ec2()),
            instances: Arc::new(Instances::new(ec2(), name, shifted_names(&zonal_shifts, &zone_names))),
            inheritance: Inheritance::new(owners.clone()),
            owners,
            resolver,
            zonal_shifts,
            metrics: AwsMetrics::default(),
            cluster: RwLock::new(cluster),
            version: RwLock::new(version),
            zone_names,
            region,
            reserved_capacity,
            strict_min_values,
            node_overlay,
            aws,
            clock,
            options,
        }
    }

    /// Sends what callers have gathered. Without it, nothing is launched, looked up or ended.
    pub async fn run(&self) {
        let fleets = self
            .fleets
            .run(|gathered| self.metrics.gathered("create_fleet", gathered));
        let instances = self
            .instances
            .run(|batcher, gathered| self.metrics.gathered(batcher, gathered));
        let inheritance = self.inheritance.run(self.instances.clone());
        futures::join!(fleets, instances, inheritance);
    }

    pub fn cluster(&self) -> ClusterFacts {
        self.cluster.read().clone()
    }

    pub fn version(&self) -> Version {
        *self.version.read()
    }

    /// Returns whether the version is another one than before.
    pub fn set_version(&self, version: Version) -> bool {
        let mut known = self.version.write();
        let is_new = *known != version;
        *known = version;
        is_new
    }

    /// Learns the addresses of services from EKS, once.
    pub async fn learn_service_cidr(&self) -> Result<(), AwsError> {
        if self.cluster.read().service_cidr.is_some() {
            return Ok(());
        }
        let found = self.aws.eks.cluster(&self.options.cluster_name).await?;
        let cidr = [found.service_cidr_v4, found.service_cidr_v6]
            .into_iter()
            .flatten()
            .find(|cidr| !cidr.is_empty());
        self.cluster.write().service_cidr = cidr;
        Ok(())
    }

    /// EC2 speaks of zones by name, shifts speak of their ids.
    pub fn learn_zones(&self, class: &EC2NodeClass) {
        let zones = class_view::zones(class);
        let named = zones.into_iter().filter_map(|zone| Some((zone.zone_id?, zone.zone)));
        self.zone_names.write().extend(named);
    }

    /// The placement group of the class. The error says that EC2 could not be asked and never was.
    pub async fn placement_group(&self, class: &EC2NodeClass) -> Result<Option<PlacementGroupInfo>, AwsError> {
        match &class.spec.placement_group_selector {
            Some(selector) => self.selected_group(selector).await,
            None => Ok(None),
        }
    }

    async fn selected_group(&self, selector: &PlacementGroupSelector) -> Result<Option<PlacementGroupInfo>, AwsError> {
        Ok(self.resolver.placement_groups.of(selector).await?.group)
    }

    /// Every type with its offerings, as the class sees them now. Types that AWS names no price for have that of
    /// `own_prices`.
    pub fn types(
        &self,
        class: &EC2NodeClass,
        group: Option<&PlacementGroupInfo>,
        own_prices: &BTreeMap<String, f64>,
    ) -> Result<Arc<[Arc<InstanceType>]>, CatalogError> {
        self.learn_zones(class);
        let shifted_zones = self.zonal_shifts.shifted();
        let left = |reservation: &str| self.resolver.reservations.left(reservation);
        self.catalog.of(
            class,
            &Moment {
                placement_group: group,
                shifted_zones: &shifted_zones,
                reservation_capacity: &left,
                own_prices,
            },
        )
    }

    /// The labels that instances of a type have in this class.
    pub fn requirements_of(
        &self,
        class: &EC2NodeClass,
        group: Option<&PlacementGroupInfo>,
        instance_type: &str,
    ) -> Option<Requirements> {
        let shapes = self.catalog.shapes_of(class, group).ok()?;
        let shape = shapes.iter().find(|shape| shape.name == instance_type);
        shape.map(|shape| shape.requirements.clone())
    }
}

fn shifted_names(
    shifts: &Arc<ZonalShifts>,
    names: &Arc<RwLock<BTreeMap<String, String>>>,
) -> Arc<dyn Fn() -> BTreeSet<String> + Send + Sync> {
    let (shifts, names) = (shifts.clone(), names.clone());
    Arc::new(move || {
        let shifted = shifts.shifted();
        let names = names.read();
        shifted.iter().filter_map(|id| names.get(id)).cloned().collect()
    })
}
