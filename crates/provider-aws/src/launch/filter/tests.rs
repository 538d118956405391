use model::{Overhead, Quantity, Requirement, ResourceName};

use super::*;

/// `spot/a 0.3`: an offering; reservations as `cr-1/a 0.0001 5`, blocks as `block-1/…`, interruptible as `int-1/…`.
fn offering(text: &str) -> Offering {
    let mut words = text.split(' ');
    let (kind, zone) = words.next().and_then(|word| word.split_once('/')).expect("kind/zone");
    let price = words.next().and_then(|word| word.parse().ok()).expect("a price");
    let room: Option<u32> = words.next().and_then(|word| word.parse().ok());
    let capacity_type = match kind {
        "spot" => CapacityType::Spot,
        "od" => CapacityType::OnDemand,
        _ => CapacityType::Reserved,
    };
    let mut requirements: Requirements = [
        Requirement::one_of(vocabulary::CAPACITY_TYPE, [capacity_type.as_str()]),
        Requirement::one_of(vocabulary::ZONE, [zone]),
    ]
    .into_iter()
    .collect();
    if room.is_some() {
        let is = |prefix: &str| kind.starts_with(prefix);
        requirements.extend([
            Requirement::one_of(aws::CAPACITY_RESERVATION_ID, [kind]),
            Requirement::one_of(
                aws::CAPACITY_RESERVATION_TYPE,
                [if is("block") { "capacity-block" } else { "default" }],
            ),
            Requirement::one_of(aws::CAPACITY_RESERVATION_INTERRUPTIBLE, [is("int").to_string()]),
        ]);
    }
    Offering {
        capacity_type,
        zone: zone.into(),
        price,
        available: room != Some(0),
        requirements,
        reservation_capacity: room,
        capacity_override: None,
        overhead_override: None,
    }
}

fn shape(name: &str, cpu: i64, offerings: &[&str]) -> InstanceType {
    let size = name.rsplit('.').next().unwrap_or_default();
    let requirements = [
        Requirement::one_of(vocabulary::INSTANCE_TYPE, [name]),
        Requirement::one_of(aws::INSTANCE_SIZE, [size]),
        Requirement::one_of(aws::INSTANCE_FAMILY, [name.split('.').next().unwrap_or_default()]),
    ];
    let capacity = Resources::new().with(ResourceName::CPU, Quantity::from_int(cpu));
    let offerings = offerings.iter().map(|text| offering(text)).collect();
    InstanceType::new(
        name.into(),
        requirements.into_iter().collect(),
        offerings,
        capacity,
        Overhead::default(),
    )
}

fn requirements(capacity_types: &[&str]) -> Requirements {
    [Requirement::one_of(
        vocabulary::CAPACITY_TYPE,
        capacity_types.iter().copied(),
    )]
    .into_iter()
    .collect()
}

/// What remains, as `type: kind/zone …`.
fn remaining(types: Vec<InstanceType>, requirements: &Requirements) -> Result<String, NothingLeft> {
    let requests = Resources::new().with(ResourceName::CPU, Quantity::from_int(1));
    let demand = Demand {
        requirements,
        requests: &requests,
        strict_min_values: true,
    };
    let shown = |shape: &InstanceType| {
        let one = |offering: &Offering| {
            let kind = label(offering, aws::CAPACITY_RESERVATION_ID).unwrap_or(offering.capacity_type.as_str());
            format!("{kind}/{}", offering.zone)
        };
        let offerings: Vec<String> = shape.offerings.iter().map(one).collect();
        format!("{}: {}", shape.name, offerings.join(" "))
    };
    let left = candidates(types, demand)?;
    Ok(left.iter().map(shown).collect::<Vec<_>>().join("; "))
}

const BOTH: &[&str] = &["spot", "on-demand"];
const ALL: &[&str] = &["reserved", "spot", "on-demand"];

/// AW24.11.1, AW24.11.9
#[test]
fn types_that_are_too_small_dear_or_exotic_are_not_offered() {
    let plain = requirements(BOTH);
    let types = vec![
        shape("m5.large", 2, &["od/a 0.1", "spot/a 0.04"]),
        shape("c5.large", 2, &["od/a 0.2", "spot/a 0.15"]),
        shape("t3.nano", 0, &["od/a 0.01"]),
        shape("m5.metal", 96, &["od/a 0.01"]),
    ];
    assert_eq!(
        remaining(types.clone(), &plain).unwrap(),
        "m5.large: on-demand/a spot/a; c5.large: on-demand/a",
        "spot above the cheapest on-demand price is dropped"
    );
    assert_eq!(
        remaining(vec![types[3].clone()], &plain).unwrap(),
        "m5.metal: on-demand/a",
        "unless nothing else is left"
    );
    assert_eq!(remaining(vec![types[2].clone()], &plain), Err(NothingLeft::Unavailable));
    let many = (0..70)
        .map(|index| shape(&format!("m{index}.large"), 2, &["od/a 0.1"]))
        .collect();
    assert_eq!(remaining(many, &plain).unwrap().split("; ").count(), 60);
    let spot_only = vec![shape("c5.large", 2, &["spot/a 0.15"])];
    assert_eq!(
        remaining(spot_only, &plain).unwrap(),
        "c5.large: spot/a",
        "there is nothing to compare with"
    );
}

/// AW24.11.11
#[test]
fn variety_that_was_asked_for_is_kept() {
    let with = |minimum: u32| {
        let mut all = requirements(BOTH);
        all.add(model::Requirement::exists(aws::INSTANCE_FAMILY).with_min_values(Some(minimum)));
        all
    };
    let types = vec![
        shape("m5.large", 2, &["od/a 0.1", "spot/a 0.04"]),
        shape("c5.metal", 2, &["od/a 0.2", "spot/a 0.15"]),
    ];
    let two = remaining(types.clone(), &with(2)).unwrap();
    assert_eq!(
        two, "m5.large: on-demand/a spot/a; c5.metal: on-demand/a spot/a",
        "nothing is left out for its price"
    );
    assert_eq!(
        remaining(types, &with(3)),
        Err(NothingLeft::TooLittleVariety {
            key: aws::INSTANCE_FAMILY.to_owned(),
            needed: 3,
            found: 2
        })
    );
}

/// AW24.11.15
#[test]
fn of_reservations_one_kind_is_bought() {
    let all = requirements(ALL);
    let mixed = |block_price: &str| {
        vec![
            shape("m5.large", 2, &["cr-1/a 0.001 5", "od/a 0.1"]),
            shape(
                "p5.large",
                2,
                &[&format!("block-1/a {block_price} 5"), "block-2/b 0.009 5"],
            ),
            shape("c5.large", 2, &["int-1/a 0.001 5"]),
            shape("r5.large", 2, &["od/a 0.01"]),
        ]
    };
    assert_eq!(
        remaining(mixed("0.002"), &all).unwrap(),
        "m5.large: cr-1/a",
        "equal prices: plain ones first"
    );
    assert_eq!(
        remaining(mixed("0.0005"), &all).unwrap(),
        "p5.large: block-1/a",
        "one block of one type"
    );
    let zones = vec![shape(
        "m5.large",
        2,
        &["cr-1/a 0.001 2", "cr-2/a 0.001 5", "cr-3/b 0.001 1", "cr-4/b 0.001 0"],
    )];
    assert_eq!(
        remaining(zones.clone(), &all).unwrap(),
        "m5.large: cr-2/a cr-3/b",
        "the roomiest of each zone"
    );
    assert_eq!(remaining(zones, &requirements(BOTH)), Err(NothingLeft::Unavailable));
    let none = vec![shape("m5.large", 2, &["cr-1/a 0.001 0", "od/a 0.1"])];
    assert_eq!(
        remaining(none, &all).unwrap(),
        "m5.large: cr-1/a on-demand/a",
        "a full reservation changes nothing"
    );
}

/// AW24.11.15
#[test]
fn offerings_of_another_size_are_judged_by_their_own() {
    let mut types = vec![shape("m5.large", 0, &["od/a 0.1"])];
    types[0].offerings[0].capacity_override = Some(Resources::new().with(ResourceName::CPU, Quantity::from_int(4)));
    assert_eq!(remaining(types, &requirements(BOTH)).unwrap(), "m5.large: on-demand/a");
}

/// AW24.11.10
#[test]
fn the_capacity_type_is_the_cheapest_kind_that_can_be_had() {
    let types = |offerings: &[&str]| vec![shape("m5.large", 2, offerings)];
    let chosen =
        |admitted: &[&str], offerings: &[&str]| super::super::capacity_type(&requirements(admitted), &types(offerings));
    assert_eq!(chosen(BOTH, &["od/a 0.1", "spot/a 0.1"]), CapacityType::Spot);
    assert_eq!(
        chosen(&["on-demand"], &["od/a 0.1", "spot/a 0.1"]),
        CapacityType::OnDemand
    );
    assert_eq!(chosen(ALL, &["cr-1/a 0.1 1", "spot/a 0.1"]), CapacityType::Reserved);
    assert_eq!(chosen(ALL, &["cr-1/a 0.1 0", "od/a 0.1"]), CapacityType::OnDemand);
    let tenancy = |values: &[&str]| {
        let one = Requirement::one_of(aws::INSTANCE_TENANCY, values.iter().copied());
        super::super::tenancy(&[one].into_iter().collect())
    };
    assert_eq!(super::super::tenancy(&Requirements::default()), "default");
    assert_eq!(tenancy(&["default", "dedicated"]), "default");
    assert_eq!(tenancy(&["dedicated"]), "dedicated");
}
