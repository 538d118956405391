//! From the text of a catalog file to shapes, or to one line that says what is wrong and where.

use std::{collections::BTreeMap, sync::Arc};

use model::{
    CapacityType, InstanceType, Offering, Overhead, PoolName, Quantity, Requirement, Requirements, ResourceName,
    Resources,
    dra::DynamicResources,
    requirement::{InvalidRequirement, SelectorRequirement},
    vocabulary,
};
use serde_json::{Map, Value};

use super::{
    Catalog, CatalogError, Shelf, Shelves, SpotPrices, derive,
    devices::{self, DevicesEntry},
    format::{OFFERING_FIELDS, OfferingEntry, OverheadEntry, TYPE_FIELDS, TypeEntry},
};

/// Where in the file a complaint belongs.
#[derive(Clone, Copy)]
struct Place<'a> {
    file: &'a str,
    pool: Option<&'a str>,
    index: usize,
    name: Option<&'a str>,
}

impl Place<'_> {
    fn complain(self, field: impl Into<String>, problem: impl ToString) -> CatalogError {
        CatalogError::BadField {
            file: self.file.to_owned(),
            entry: self.to_string(),
            field: field.into(),
            problem: problem.to_string(),
        }
    }
}

impl std::fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(pool) = self.pool {
            write!(f, "byNodePool {pool}, ")?;
        }
        write!(f, "entry {}", self.index + 1)?;
        self.name.map_or(Ok(()), |name| write!(f, " ({name})"))
    }
}

/// Reads a whole file. `file` is only its name, for complaints.
pub fn catalog(file: &str, text: &str) -> Result<Catalog, CatalogError> {
    let value: Value = serde_json::from_str(text).map_err(|cause| CatalogError::NotJson {
        file: file.to_owned(),
        cause,
    })?;
    let mut ignored = Vec::new();
    let mut catalog = Catalog {
        shelves: Shelves::Common(Shelf::default()),
        reservation_id: None,
        unsupported_provisioners: Vec::new(),
        unsupported_topology_keys: Vec::new(),
        spot_prices: SpotPrices::AsListed,
        ignored_fields: Vec::new(),
    };
    match value {
        Value::Array(entries) => catalog.shelves = Shelves::Common(shelf(file, None, entries, &mut ignored)?),
        Value::Object(fields) => extended(file, fields, &mut catalog, &mut ignored)?,
        _ => {
            return Err(top_level(
                file,
                "",
                "must be a list of instance types, or an object with byNodePool",
            ));
        }
    }
    catalog.ignored_fields = ignored;
    Ok(catalog)
}

fn top_level(file: &str, field: &str, problem: impl ToString) -> CatalogError {
    CatalogError::BadFile {
        file: file.to_owned(),
        field: field.to_owned(),
        problem: problem.to_string(),
    }
}

fn extended(
    file: &str,
    fields: Map<String, Value>,
    catalog: &mut Catalog,
    ignored: &mut Vec<String>,
) -> Result<(), CatalogError> {
    let mut by_pool = None;
    for (field, value) in fields {
        let complain = |problem: serde_json::Error| top_level(file, &field, problem);
        match field.as_str() {
            "byNodePool" => {
                let lists: BTreeMap<String, Vec<Value>> = serde_json::from_value(value).map_err(complain)?;
                let read = |(pool, entries): (String, Vec<Value>)| {
                    let shelf = shelf(file, Some(&pool), entries, ignored)?;
                    Ok((PoolName::from(pool), shelf))
                };
                by_pool = Some(lists.into_iter().map(read).collect::<Result<_, CatalogError>>()?);
            }
            "reservationIDLabel" => {
                let label: Option<String> = serde_json::from_value(value).map_err(complain)?;
                catalog.reservation_id = label.filter(|label| !label.is_empty()).map(Into::into);
            }
            "unsupportedProvisioners" => {
                catalog.unsupported_provisioners = serde_json::from_value(value).map_err(complain)?;
            }
            "unsupportedTopologyKeys" => {
                catalog.unsupported_topology_keys = serde_json::from_value(value).map_err(complain)?;
            }
            _ => ignored.push(field),
        }
    }
    catalog.shelves = Shelves::ByPool(by_pool.ok_or_else(|| top_level(file, "byNodePool", "is missing"))?);
    Ok(())
}

fn shelf(
    file: &str,
    pool: Option<&str>,
    entries: Vec<Value>,
    ignored: &mut Vec<String>,
) -> Result<Shelf, CatalogError> {
    let mut shapes: Vec<Arc<InstanceType>> = Vec::with_capacity(entries.len());
    let mut devices = BTreeMap::new();
    for (index, value) in entries.into_iter().enumerate() {
        let name = value.get("name").and_then(Value::as_str).map(str::to_owned);
        let place = Place {
            file,
            pool,
            index,
            name: name.as_deref(),
        };
        note_unread(place, &value, ignored);
        let mut entry: TypeEntry = serde_path_to_error::deserialize(value).map_err(|error| {
            let path = error.path().to_string();
            place.complain(if path == "." { "the entry".to_owned() } else { path }, error.inner())
        })?;
        let listed = entry.dynamic_resources.take();
        let own = listed.as_ref().map(|listed| own_devices(place, listed)).transpose()?;
        let shape = shape(place, entry)?.with_dynamic_resources(own.map(Arc::new));
        if let Some(listed) = listed {
            devices.insert(shape.name.clone(), listed);
        }
        shapes.push(Arc::new(shape));
    }
    Ok(Shelf {
        shapes: shapes.into(),
        devices,
    })
}

/// Upstream's reader skips fields that it does not know, so files in use may have some. A misspelt field is skipped
/// just as well; that is why they are reported.
fn note_unread(place: Place<'_>, value: &Value, ignored: &mut Vec<String>) {
    let mut note = |value: &Value, known: &[&str], prefix: &str| {
        let keys = value.as_object().into_iter().flat_map(Map::keys);
        for key in keys.filter(|key| !known.iter().any(|known| known.eq_ignore_ascii_case(key))) {
            ignored.push(format!("{place}: {prefix}{key}"));
        }
    };
    note(value, &TYPE_FIELDS, "");
    let offerings = value.get("offerings").and_then(Value::as_array);
    for (index, offering) in offerings.into_iter().flatten().enumerate() {
        note(offering, &OFFERING_FIELDS, &format!("offerings[{index}]."));
    }
}

fn own_devices(place: Place<'_>, listed: &Value) -> Result<DynamicResources, CatalogError> {
    let field = |path: &str| format!("dynamicResources.{path}").trim_end_matches('.').to_owned();
    let entry: DevicesEntry = serde_path_to_error::deserialize(listed.clone())
        .map_err(|error| place.complain(field(&error.path().to_string()), error.inner()))?;
    devices::read(&entry).map_err(|error| place.complain(field(&error.field), &error.problem))
}

fn shape(place: Place<'_>, entry: TypeEntry) -> Result<InstanceType, CatalogError> {
    if entry.name.is_empty() {
        return Err(place.complain("name", "is empty"));
    }
    let mut capacity = not_negative(place, "resources", entry.resources.unwrap_or_default())?;
    let offerings = entry.offerings.into_iter().enumerate();
    let offerings = offerings
        .map(|(index, offer)| offering(place, index, offer))
        .collect::<Result<Vec<_>, _>>()?;
    let requirements = match &entry.requirements {
        Some(listed) => requirements(place, "requirements", listed)?,
        None => {
            if !capacity.lists("pods") {
                capacity.set(ResourceName::PODS, Quantity::from_int(derive::DEFAULT_PODS));
            }
            let missing = |field: &str| place.complain(field, "is missing, and there are no requirements in its place");
            let architecture = entry.architecture.ok_or_else(|| missing("architecture"))?;
            let systems = entry.operating_systems.ok_or_else(|| missing("operatingSystems"))?;
            derive::requirements(&entry.name, &architecture, &systems, &capacity, &offerings)
        }
    };
    let overhead = match entry.overhead {
        Some(listed) => overhead(place, "overhead", listed)?,
        None => derive::overhead(),
    };
    Ok(InstanceType::new(
        entry.name.into(),
        requirements,
        offerings,
        capacity,
        overhead,
    ))
}

fn offering(place: Place<'_>, index: usize, entry: OfferingEntry) -> Result<Offering, CatalogError> {
    let field = |name: &str| format!("offerings[{index}].{name}");
    if !entry.price.is_finite() || entry.price < 0.0 {
        return Err(place.complain(field("Price"), format!("{} is not a price", entry.price)));
    }
    let requirements = requirements(place, &field("Requirements"), &entry.requirements)?;
    let pinned = |key: &str| {
        derive::pinned(&requirements, key)
            .ok_or_else(|| place.complain(field("Requirements"), format!("has to name one value for {key}")))
    };
    let capacity_type: CapacityType = pinned(vocabulary::CAPACITY_TYPE)?
        .parse()
        .map_err(|problem| place.complain(field("Requirements"), problem))?;
    let zone = pinned(vocabulary::ZONE)?.into();
    let listed = |name: &str, resources: Option<Resources>| {
        let listed = resources.filter(|resources| !resources.is_empty());
        listed
            .map(|resources| not_negative(place, &field(name), resources))
            .transpose()
    };
    Ok(Offering {
        capacity_type,
        zone,
        price: entry.price,
        available: entry.available.unwrap_or(true),
        reservation_capacity: match capacity_type {
            CapacityType::Reserved => Some(entry.reservation_capacity.unwrap_or(0)),
            CapacityType::Spot | CapacityType::OnDemand => None,
        },
        capacity_override: listed("CapacityOverride", entry.capacity_override)?,
        overhead_override: entry
            .overhead_override
            .map(|listed| overhead(place, &field("OverheadOverride"), listed))
            .transpose()?,
        requirements,
    })
}

fn overhead(place: Place<'_>, field: &str, entry: OverheadEntry) -> Result<Overhead, CatalogError> {
    let part = |name: &str, resources: Option<Resources>| {
        not_negative(place, &format!("{field}.{name}"), resources.unwrap_or_default())
    };
    Ok(Overhead {
        kube_reserved: part("kubeReserved", entry.kube_reserved)?,
        system_reserved: part("systemReserved", entry.system_reserved)?,
        eviction_threshold: part("evictionThreshold", entry.eviction_threshold)?,
    })
}

fn not_negative(place: Place<'_>, field: &str, resources: Resources) -> Result<Resources, CatalogError> {
    if let Some((name, amount)) = resources.iter().find(|(_, amount)| amount.is_negative()) {
        return Err(place.complain(format!("{field}.{name}"), format!("{amount} is negative")));
    }
    Ok(resources)
}

fn requirements(place: Place<'_>, field: &str, listed: &[SelectorRequirement]) -> Result<Requirements, CatalogError> {
    let read = |(index, written): (usize, &SelectorRequirement)| {
        Requirement::try_from(written)
            .map_err(|problem: InvalidRequirement| place.complain(format!("{field}[{index}]"), problem))
    };
    listed.iter().enumerate().map(read).collect()
}
