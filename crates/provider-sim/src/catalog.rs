//! What the simulated cloud sells: the embedded EC2 shapes, or a file in the KWOK format.
//!
//! `format` is the file, `read` and `devices` turn it into shapes, `derive` fills in what upstream's provider derives.

mod derive;
mod devices;
mod ec2;
pub mod format;
mod generic;
mod read;

use std::{collections::BTreeMap, path::Path, sync::Arc};

use api::labels::{KWOK_DOMAIN, kwok};
use model::{
    InstanceType, InstanceTypeName, LabelKey, Offering, Overhead, PoolName, Resources, Vocabulary,
    snapshot::Catalog as Shapes,
};
use serde_json::Value;

use format::{Extended, OfferingEntry, OverheadEntry, TypeEntry};

/// Why a file is not a catalog.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    #[error("{file}: cannot be read")]
    Unreadable {
        file: String,
        #[source]
        cause: std::io::Error,
    },
    #[error("{file}: is not JSON")]
    NotJson {
        file: String,
        #[source]
        cause: serde_json::Error,
    },
    #[error("{file}: {field}{}{problem}", if field.is_empty() { "" } else { ": " })]
    BadFile {
        file: String,
        field: String,
        problem: String,
    },
    #[error("{file}, {entry}: {field}: {problem}")]
    BadField {
        file: String,
        entry: String,
        field: String,
        problem: String,
    },
}

/// Where a catalog's spot prices come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpotPrices {
    /// They are whatever the file says.
    AsListed,
    /// A fixed share of the on-demand price. To be called synthetic wherever they are shown.
    Synthetic,
}

impl SpotPrices {
    /// What has to stand beside these prices when people see them.
    pub fn note(self) -> Option<&'static str> {
        match self {
            SpotPrices::AsListed => None,
            SpotPrices::Synthetic => Some("spot prices are synthetic: 0.7 of the on-demand price"),
        }
    }
}

/// Everything that is on sale, and what its file says about the provider beside it.
#[derive(Clone, Debug)]
pub struct Catalog {
    shelves: Shelves,
    /// The label that tells reservations apart.
    pub reservation_id: Option<LabelKey>,
    /// Storage provisioners that the provider does not support.
    pub unsupported_provisioners: Vec<String>,
    /// Topology keys of volumes that the provider does not support.
    pub unsupported_topology_keys: Vec<String>,
    pub spot_prices: SpotPrices,
    /// Fields of the file that nobody reads, each with its place: probably misspelt.
    pub ignored_fields: Vec<String>,
}

#[derive(Clone, Debug)]
enum Shelves {
    /// All pools see the same shapes.
    Common(Shelf),
    /// A pool that is not listed has no shapes.
    ByPool(BTreeMap<PoolName, Shelf>),
}

#[derive(Clone, Debug, Default)]
struct Shelf {
    shapes: Shapes,
    /// What the shapes' devices were read from, to be written again.
    devices: BTreeMap<InstanceTypeName, Value>,
}

impl Shelf {
    fn of(shapes: Shapes) -> Self {
        Self {
            shapes,
            devices: BTreeMap::new(),
        }
    }
}

impl Catalog {
    /// 853 real EC2 shapes of us-west-2 with their on-demand prices; spot prices are synthetic.
    pub fn ec2() -> Self {
        Self::embedded(ec2::shapes())
    }

    /// The 144 made-up shapes that upstream's KWOK provider has built in and that its tests refer to.
    pub fn generic() -> Self {
        Self::embedded(generic::shapes())
    }

    fn embedded(shapes: Vec<Arc<InstanceType>>) -> Self {
        Self {
            spot_prices: SpotPrices::Synthetic,
            ..Self::of(shapes)
        }
    }

    /// These shapes for every pool.
    pub fn of(shapes: Vec<Arc<InstanceType>>) -> Self {
        Self::stocked(Shelves::Common(Shelf::of(shapes.into())))
    }

    /// Other shapes for each pool. A pool that is not among them has none.
    pub fn by_pool(shapes: impl IntoIterator<Item = (PoolName, Shapes)>) -> Self {
        let shelves = shapes.into_iter().map(|(pool, shapes)| (pool, Shelf::of(shapes)));
        Self::stocked(Shelves::ByPool(shelves.collect()))
    }

    fn stocked(shelves: Shelves) -> Self {
        Self {
            shelves,
            reservation_id: None,
            unsupported_provisioners: Vec::new(),
            unsupported_topology_keys: Vec::new(),
            spot_prices: SpotPrices::AsListed,
            ignored_fields: Vec::new(),
        }
    }

    pub fn load(path: &Path) -> Result<Self, CatalogError> {
        let file = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&file, &text),
            Err(cause) => Err(CatalogError::Unreadable { file, cause }),
        }
    }

    /// Reads the text of a file; `file` is its name in complaints.
    pub fn parse(file: &str, text: &str) -> Result<Self, CatalogError> {
        read::catalog(file, text)
    }

    /// The shapes that a pool may launch, in the order of the file.
    pub fn shapes(&self, pool: &PoolName) -> Shapes {
        self.shelf(pool).map(|shelf| shelf.shapes.clone()).unwrap_or_default()
    }

    /// The pools that have shapes of their own; none where all pools see the same.
    pub fn pools(&self) -> impl Iterator<Item = &PoolName> {
        let by_pool = match &self.shelves {
            Shelves::Common(_) => None,
            Shelves::ByPool(shelves) => Some(shelves.keys()),
        };
        by_pool.into_iter().flatten()
    }

    /// Every shape, whichever pool may launch it.
    pub fn all_shapes(&self) -> impl Iterator<Item = &Arc<InstanceType>> {
        self.shelves().flat_map(|shelf| shelf.shapes.iter())
    }

    /// Core's words, the KWOK provider's own, and every label that the catalog itself uses.
    pub fn vocabulary(&self) -> Vocabulary {
        let mut words = Vocabulary::core();
        words.restricted_domains.insert(KWOK_DOMAIN.to_owned());
        words
            .well_known
            .extend(kwok::WELL_KNOWN.iter().map(|key| LabelKey::from(*key)));
        for shape in self.all_shapes() {
            let offered = shape.offerings.iter().flat_map(|offering| offering.requirements.iter());
            for requirement in shape.requirements.iter().chain(offered) {
                if !words.well_known.contains(&requirement.key) {
                    words.well_known.insert(requirement.key.clone());
                }
            }
        }
        words.reservation_id = self.reservation_id.clone();
        words
            .unsupported_provisioners
            .extend(self.unsupported_provisioners.iter().cloned());
        words
            .unsupported_topology_keys
            .extend(self.unsupported_topology_keys.iter().cloned());
        words
    }

    /// The catalog as the file that [`load`](Self::load) reads. Shapes whose labels and overhead can be derived are
    /// written in the short form that upstream's provider reads, too.
    pub fn to_json(&self) -> String {
        let entries = |shelf: &Shelf| -> Vec<TypeEntry> {
            let entry = |shape: &Arc<InstanceType>| type_entry(shape, shelf.devices.get(&shape.name));
            shelf.shapes.iter().map(entry).collect()
        };
        let text = match &self.shelves {
            Shelves::Common(shelf) => serde_json::to_string_pretty(&entries(shelf)),
            Shelves::ByPool(shelves) => serde_json::to_string_pretty(&Extended {
                by_node_pool: shelves
                    .iter()
                    .map(|(pool, shelf)| (pool.to_string(), entries(shelf)))
                    .collect(),
                reservation_id_label: self.reservation_id.as_ref().map(ToString::to_string),
                unsupported_provisioners: self.unsupported_provisioners.clone(),
                unsupported_topology_keys: self.unsupported_topology_keys.clone(),
            }),
        };
        text.expect("catalog entries have string keys and finite prices")
    }

    fn shelf(&self, pool: &PoolName) -> Option<&Shelf> {
        match &self.shelves {
            Shelves::Common(shelf) => Some(shelf),
            Shelves::ByPool(shelves) => shelves.get(pool),
        }
    }

    fn shelves(&self) -> Box<dyn Iterator<Item = &Shelf> + '_> {
        match &self.shelves {
            Shelves::Common(shelf) => Box::new(std::iter::once(shelf)),
            Shelves::ByPool(shelves) => Box::new(shelves.values()),
        }
    }
}

fn type_entry(shape: &InstanceType, devices: Option<&Value>) -> TypeEntry {
    let short = derive::short_form(shape);
    let is_short = short.is_some();
    let (architecture, operating_systems) = short.unzip();
    TypeEntry {
        name: shape.name.to_string(),
        offerings: shape.offerings.iter().map(offering_entry).collect(),
        architecture,
        operating_systems,
        resources: Some(shape.capacity.clone()),
        requirements: (!is_short).then(|| shape.requirements.to_selector()),
        overhead: (!is_short).then(|| overhead_entry(&shape.overhead)),
        dynamic_resources: devices.cloned(),
    }
}

fn offering_entry(offering: &Offering) -> OfferingEntry {
    OfferingEntry {
        price: offering.price,
        available: Some(offering.available),
        requirements: offering.requirements.to_selector(),
        reservation_capacity: offering.reservation_capacity,
        capacity_override: offering.capacity_override.clone(),
        overhead_override: offering.overhead_override.as_ref().map(overhead_entry),
    }
}

fn overhead_entry(overhead: &Overhead) -> OverheadEntry {
    let listed = |resources: &Resources| (!resources.is_empty()).then(|| resources.clone());
    OverheadEntry {
        kube_reserved: listed(&overhead.kube_reserved),
        system_reserved: listed(&overhead.system_reserved),
        eviction_threshold: listed(&overhead.eviction_threshold),
    }
}

#[cfg(test)]
mod tests;
