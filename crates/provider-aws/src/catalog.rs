//! What a class can buy, put together from what is known about the region.
//!
//! Facts about types change twice a day, offerings by the minute. So shapes are kept per class until something that they
//! depend on changes, and offerings are added anew for every question.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::aws::EC2NodeClass;
use clock::Clock;
use jiff::{SignedDuration, Timestamp};
use model::{InstanceType, Quantity};
use parking_lot::{Mutex, RwLock};

use crate::{
    cache::Cache,
    class_view::{self, ZoneInfo},
    error::AwsError,
    instance_type::{Formulas, Reserved, Setting, Shape, Unreadable, check_expressions},
    offering::{
        Buyer, OfferingSource, Prices, RefreshError, Region, Shortages, refresh_on_demand, refresh_spot, with_offerings,
    },
    options::Options,
    ports::{Aws, InstanceTypeInfo, PlacementGroupInfo},
};

/// How long what a node reported counts for others of its type and image.
const MEMORY_SEEN_FOR: SignedDuration = SignedDuration::from_hours(60 * 24);

#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// Not asked yet, or EC2 named none.
    #[error("no instance types are known")]
    NoTypes,
    #[error("the node class has no subnets")]
    NoSubnets,
    #[error("the node class cannot be read")]
    Unreadable(#[source] Unreadable),
}

/// What EC2 said about the region's types.
#[derive(Default)]
struct Types {
    infos: Vec<InstanceTypeInfo>,
    sold_in: BTreeMap<String, Vec<String>>,
    zones: BTreeSet<String>,
    version: u64,
    as_of: Option<Timestamp>,
}

/// The shapes of a class, and what they were made from.
type Resolved = (String, Arc<Vec<Shape>>);

/// The types of a class with their offerings, and what they were made from.
type Offered = (String, Arc<[Arc<InstanceType>]>);

/// The moment's part of a question.
pub struct Moment<'a> {
    pub placement_group: Option<&'a PlacementGroupInfo>,
    pub shifted_zones: &'a BTreeSet<String>,
    pub reservation_capacity: &'a dyn Fn(&str) -> u32,
    /// For types that AWS names no price for.
    pub own_prices: &'a BTreeMap<String, f64>,
}

/// Everything that is sold in the region.
pub struct RegionCatalog {
    aws: Aws,
    clock: Arc<dyn Clock>,
    region: String,
    options: Arc<Options>,
    reserved_capacity: bool,
    formulas: Formulas,
    sources: Vec<Arc<dyn OfferingSource>>,
    types: RwLock<Arc<Types>>,
    prices: RwLock<Prices>,
    shortages: Mutex<Shortages>,
    /// Memory that nodes reported, by type and image.
    memory: Cache<(String, String), Quantity>,
    shapes: Mutex<BTreeMap<String, Resolved>>,
    /// A wave of launches asks the same question many times within a second.
    offered: Mutex<BTreeMap<String, Offered>>,
}

impl RegionCatalog {
    pub fn new(aws: Aws, clock: Arc<dyn Clock>, region: &str, options: Arc<Options>, reserved_capacity: bool) -> Self {
        Self {
            aws,
            region: region.to_owned(),
            formulas: Formulas::new(clock.clone(), options.node_class_cel),
            options,
            reserved_capacity,
            sources: Vec::new(),
            types: RwLock::default(),
            prices: RwLock::new(Prices::compiled_in(region)),
            shortages: Mutex::default(),
            memory: Cache::new(clock.clone(), MEMORY_SEEN_FOR),
            shapes: Mutex::default(),
            offered: Mutex::default(),
            clock,
        }
    }

    /// With others who sell, asked in this order.
    #[must_use]
    pub fn with_sources(self, sources: Vec<Arc<dyn OfferingSource>>) -> Self {
        Self { sources, ..self }
    }

    /// Asks EC2 for all types and where they are sold.
    pub async fn refresh_types(&self) -> Result<(), AwsError> {
        let ec2 = &self.aws.ec2;
        let as_of = Some(self.clock.now());
        let (mut infos, offerings) = futures::try_join!(ec2.instance_types(), ec2.type_offerings())?;
        infos.sort_by(|a, b| a.name.cmp(&b.name));
        let mut sold_in: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for offering in &offerings {
            sold_in
                .entry(offering.instance_type.clone())
                .or_default()
                .push(offering.zone.clone());
        }
        let mut types = self.types.write();
        let version = match types.infos == infos && types.sold_in == sold_in {
            true => types.version,
            false => types.version + 1,
        };
        *types = Arc::new(Types {
            infos,
            sold_in,
            zones: offerings.into_iter().map(|offering| offering.zone).collect(),
            version,
            as_of,
        });
        Ok(())
    }

    /// When EC2 last told its types.
    pub fn types_as_of(&self) -> Option<Timestamp> {
        self.types.read().as_of
    }

    /// Asks for all prices. What cannot be had stays as it was; the first error is returned.
    pub async fn refresh_prices(&self) -> Result<(), RefreshError> {
        let (on_demand, spot) = futures::join!(self.refresh_on_demand_prices(), self.refresh_spot_prices());
        on_demand.and(spot)
    }

    /// Asks for on-demand prices, where there is a list of them.
    pub async fn refresh_on_demand_prices(&self) -> Result<(), RefreshError> {
        if self.has_price_list() {
            let now = self.clock.now();
            let prices = refresh_on_demand(&*self.aws.prices, &self.region).await?;
            self.prices.write().update_on_demand(prices, now);
        }
        Ok(())
    }

    /// Asks what spot capacity costs now.
    pub async fn refresh_spot_prices(&self) -> Result<(), RefreshError> {
        let now = self.clock.now();
        let prices = refresh_spot(&*self.aws.ec2, now).await?;
        self.prices.write().update_spot(prices, now);
        Ok(())
    }

    /// The price list cannot be reached from isolated networks and does not cover GovCloud.
    fn has_price_list(&self) -> bool {
        !self.options.isolated_vpc && !self.region.starts_with("us-gov")
    }

    /// When AWS last told on-demand prices.
    pub fn on_demand_prices_as_of(&self) -> Option<Timestamp> {
        self.prices.read().on_demand_as_of
    }

    /// When AWS last told spot prices.
    pub fn spot_prices_as_of(&self) -> Option<Timestamp> {
        self.prices.read().spot_as_of
    }

    /// Changes what counts as short.
    pub fn shortages<T>(&self, with: impl FnOnce(&mut Shortages) -> T) -> T {
        let mut shortages = self.shortages.lock();
        shortages.advance(self.clock.now());
        with(&mut shortages)
    }

    /// A node of this type and image has reported its memory. The least that any reported counts.
    pub fn saw_memory(&self, instance_type: &str, image: &str, memory: Quantity) {
        let key = (instance_type.to_owned(), image.to_owned());
        let known = self.memory.get(&key);
        let least = known.map_or(memory, |known| known.min(memory));
        self.memory.put(key, least);
    }

    /// Every type with all its offerings, as the class sees them now.
    pub fn of(&self, class: &EC2NodeClass, moment: &Moment<'_>) -> Result<Arc<[Arc<InstanceType>]>, CatalogError> {
        let types = self.known_types()?;
        let zones = zones_of(class)?;
        let setting = self.setting(class, &zones, moment.placement_group);
        let (made_from, shapes) = self.shapes(&types, &setting)?;
        let prices = self.prices.read();
        let mut shortages = self.shortages.lock();
        shortages.advance(self.clock.now());
        let left: Vec<u32> = class_view::reservations(class)
            .iter()
            .map(|reservation| (moment.reservation_capacity)(&reservation.id))
            .collect();
        let others: Vec<u64> = self.sources.iter().map(|source| source.version()).collect();
        let versions = (prices.version(), shortages.version(), others);
        let (shifted_zones, own_prices) = (moment.shifted_zones, moment.own_prices);
        let key = format!("{versions:?} {left:?} {shifted_zones:?} {own_prices:?} {made_from}");
        let uid = class.metadata.uid.clone().unwrap_or_default();
        if let Some((known, offered)) = self.offered.lock().get(&uid)
            && *known == key
        {
            return Ok(offered.clone());
        }
        let region = Region {
            zones: &types.zones,
            prices: &prices,
            own_prices,
            shortages: &shortages,
            shifted_zones,
            reservation_capacity: moment.reservation_capacity,
            reserved_capacity: self.reserved_capacity,
            sources: &self.sources,
        };
        let buyer = Buyer {
            class,
            zones: &zones,
            placement_group: moment.placement_group,
        };
        let offered: Arc<[Arc<InstanceType>]> = shapes
            .iter()
            .map(|shape| Arc::new(with_offerings(shape, buyer, &region)))
            .collect();
        self.offered.lock().insert(uid, (key, offered.clone()));
        Ok(offered)
    }

    /// Every type as the class sees it, without offerings.
    pub fn shapes_of(
        &self,
        class: &EC2NodeClass,
        group: Option<&PlacementGroupInfo>,
    ) -> Result<Arc<Vec<Shape>>, CatalogError> {
        let types = self.known_types()?;
        let zones = zones_of(class)?;
        Ok(self.shapes(&types, &self.setting(class, &zones, group))?.1)
    }

    /// What is set aside on each of these types; those that nothing is set aside on are not mentioned.
    pub fn reserved(
        &self,
        class: &EC2NodeClass,
        group: Option<&PlacementGroupInfo>,
        types: &[InstanceType],
    ) -> Result<BTreeMap<String, Reserved>, CatalogError> {
        let shapes = self.shapes_of(class, group)?;
        let reserved = |wanted: &InstanceType| {
            let place = shapes.binary_search_by(|shape| shape.name.as_str().cmp(wanted.name.as_str()));
            let shape = &shapes[place.ok()?];
            (shape.reserved != Reserved::default()).then(|| (shape.name.clone(), shape.reserved.clone()))
        };
        Ok(types.iter().filter_map(reserved).collect())
    }

    /// The expressions of all classes.
    pub fn formulas(&self) -> &Formulas {
        &self.formulas
    }

    /// What the class's expressions do wrong on the first type that they do not fit, if there is one.
    pub fn misfit(&self, class: &EC2NodeClass) -> Result<Option<Unreadable>, CatalogError> {
        let types = self.known_types()?;
        let setting = self.setting(class, &[], None);
        let checked = types.infos.iter().map(|info| check_expressions(info, &setting));
        Ok(checked.filter_map(Result::err).next())
    }

    fn known_types(&self) -> Result<Arc<Types>, CatalogError> {
        let types = self.types.read().clone();
        if types.infos.is_empty() || types.zones.is_empty() {
            return Err(CatalogError::NoTypes);
        }
        Ok(types)
    }

    fn setting<'a>(
        &'a self,
        class: &'a EC2NodeClass,
        zones: &'a [ZoneInfo],
        placement_group: Option<&'a PlacementGroupInfo>,
    ) -> Setting<'a> {
        Setting {
            region: &self.region,
            options: &self.options,
            formulas: &self.formulas,
            class,
            zones,
            placement_group,
        }
    }

    fn shapes(&self, types: &Types, setting: &Setting<'_>) -> Result<Resolved, CatalogError> {
        let class = setting.class;
        let uid = class.metadata.uid.clone().unwrap_or_default();
        let selected = |image: &str| class_view::amis(class).iter().any(|ami| ami.id == image);
        let memory: BTreeMap<(String, String), Quantity> = self
            .memory
            .live()
            .into_iter()
            .filter(|((_, image), _)| selected(image))
            .collect();
        let status = class
            .status
            .as_ref()
            .map(|status| (&status.subnets, &status.capacity_reservations, &status.amis));
        let group = setting.placement_group;
        let key = format!("{} {:?} {status:?} {group:?} {memory:?}", types.version, class.spec);
        if let Some((known, shapes)) = self.shapes.lock().get(&uid)
            && *known == key
        {
            return Ok((key, shapes.clone()));
        }
        let none = Vec::new();
        let reported: BTreeSet<&str> = memory.keys().map(|(name, _)| name.as_str()).collect();
        let shape = |info: &InstanceTypeInfo| -> Result<Shape, Unreadable> {
            let sold_in = types.sold_in.get(&info.name).unwrap_or(&none);
            let mut shape = Shape::of(info, sold_in, setting)?;
            // Another image has another kernel, which keeps another share.
            if reported.contains(info.name.as_str())
                && let Some(image) = class_view::ami_for(class, &shape.requirements)
                && let Some(seen) = memory.get(&(info.name.clone(), image.id.clone()))
            {
                shape.capacity.set(model::ResourceName::MEMORY, *seen);
            }
            Ok(shape)
        };
        let shapes: Result<Vec<Shape>, Unreadable> = types.infos.iter().map(shape).collect();
        let shapes = Arc::new(shapes.map_err(CatalogError::Unreadable)?);
        self.shapes.lock().insert(uid, (key.clone(), shapes.clone()));
        Ok((key, shapes))
    }

    /// Forgets a class that is gone.
    pub fn forget(&self, class_uid: &str) {
        self.shapes.lock().remove(class_uid);
        self.offered.lock().remove(class_uid);
    }
}

fn zones_of(class: &EC2NodeClass) -> Result<Vec<ZoneInfo>, CatalogError> {
    let zones = class_view::zones(class);
    match zones.is_empty() {
        true => Err(CatalogError::NoSubnets),
        false => Ok(zones),
    }
}

#[cfg(test)]
mod tests;
