use api::aws::{CapacityReservation, InstanceMatchCriteria, ReservationType};
use jiff::Timestamp;

use super::*;
use crate::{
    instance_type::Setting,
    ports::{InstanceTypeInfo, SpotPrice},
    testing::samples::{self, REGION},
};

struct Case {
    class: EC2NodeClass,
    prices: Prices,
    shortages: Shortages,
    shifted: BTreeSet<String>,
    group: Option<PlacementGroupInfo>,
    reserved_capacity: bool,
    own_prices: BTreeMap<String, f64>,
    sources: Vec<Arc<dyn OfferingSource>>,
    info: InstanceTypeInfo,
}

fn case() -> Case {
    Case {
        class: samples::class(),
        prices: Prices::compiled_in(REGION),
        shortages: Shortages::default(),
        shifted: BTreeSet::new(),
        group: None,
        reserved_capacity: true,
        own_prices: BTreeMap::new(),
        sources: Vec::new(),
        info: samples::m5_large(),
    }
}

impl Case {
    fn listed(&self) -> InstanceType {
        let zones = class_view::zones(&self.class);
        let setting = Setting {
            region: REGION,
            options: &samples::options(),
            formulas: &samples::formulas(),
            class: &self.class,
            zones: &zones,
            placement_group: self.group.as_ref(),
        };
        let all: BTreeSet<String> = ["us-west-2a", "us-west-2b", "us-west-2c"].map(str::to_owned).into();
        let sold: Vec<String> = all.iter().cloned().collect();
        let shape = Shape::of(&self.info, &sold, &setting).unwrap();
        let buyer = Buyer {
            class: &self.class,
            zones: &zones,
            placement_group: self.group.as_ref(),
        };
        let region = Region {
            zones: &all,
            prices: &self.prices,
            own_prices: &self.own_prices,
            shortages: &self.shortages,
            shifted_zones: &self.shifted,
            reservation_capacity: &|id| if id == "cr-full" { 0 } else { 3 },
            reserved_capacity: self.reserved_capacity,
            sources: &self.sources,
        };
        with_offerings(&shape, buyer, &region)
    }

    /// What can be bought, as `spot/a on-demand/a …`.
    fn available(&self) -> String {
        let listed = self.listed();
        let short = |offering: &Offering| {
            let zone = offering.zone.as_str().trim_start_matches("us-west-2");
            format!("{}/{zone}", offering.capacity_type)
        };
        listed.available().map(short).collect::<Vec<_>>().join(" ")
    }
}

fn reservation(id: &str, kind: ReservationType, state: ReservationState) -> CapacityReservation {
    CapacityReservation {
        availability_zone: "us-west-2a".to_owned(),
        end_time: None,
        id: id.to_owned(),
        instance_match_criteria: InstanceMatchCriteria::Open,
        instance_type: "m5.large".to_owned(),
        owner_id: "1".to_owned(),
        reservation_type: Some(kind),
        interruptible: Some(false),
        state: Some(state),
    }
}

/// AW24.10.1
#[test]
fn there_is_one_offering_per_zone_and_capacity_type_and_zones_without_subnets_are_listed() {
    let case = case();
    assert_eq!(case.available(), "on-demand/a spot/a on-demand/b spot/b");
    let listed = case.listed();
    assert_eq!(listed.offerings.len(), 6);
    assert!(
        listed.offerings.iter().all(|offering| offering.price == 0.096),
        "unavailable ones are priced too"
    );
    let first = &listed.offerings[0].requirements;
    assert!(first.get(aws::ZONE_ID).has("usw2-az1"));
    assert!(first.get(aws::CAPACITY_RESERVATION_ID).is_empty());
}

/// AW24.10.2, AW24.10.11
#[test]
fn spot_is_bought_only_where_it_has_a_price() {
    let mut case = case();
    assert_eq!(
        case.prices.spot("m5.large", "anywhere"),
        Some(0.096),
        "before the first answer"
    );
    let price = SpotPrice {
        instance_type: "m5.large".to_owned(),
        zone: "us-west-2b".to_owned(),
        price: 0.03,
    };
    case.prices.update_spot(vec![price], Timestamp::UNIX_EPOCH);
    assert_eq!(case.available(), "on-demand/a on-demand/b spot/b");
    assert_eq!(case.prices.spot("m5.large", "us-west-2b"), Some(0.03));
    assert_eq!(case.prices.spot("m5.large", "us-west-2a"), None);
}

/// AW24.10.3, AW24.10.4
#[test]
fn what_is_short_is_not_available() {
    let mut case = case();
    let spot = |zone| Spot {
        capacity_type: CapacityType::Spot,
        instance_type: "m5.large",
        zone,
    };
    case.shortages.mark(spot("us-west-2a"), None);
    assert_eq!(case.available(), "on-demand/a on-demand/b spot/b");
    case.shortages.mark_capacity_type(CapacityType::Spot);
    assert_eq!(case.available(), "on-demand/a on-demand/b");
    case.shortages.mark_subnet("subnet-b");
    assert_eq!(case.available(), "on-demand/a");
    case.shortages.mark_subnet("subnet-a");
    assert_eq!(case.available(), "");
    assert_eq!(case.listed().offerings.len(), 6, "what cannot be had is still listed");
}

/// AW24.10.6, AW24.10.7
#[test]
fn reservations_are_nearly_free_and_subject_to_the_same_zones() {
    let mut case = case();
    let status = case.class.status.as_mut().unwrap();
    status.capacity_reservations = Some(vec![
        reservation("cr-1", ReservationType::Default, ReservationState::Active),
        reservation("cr-full", ReservationType::Default, ReservationState::Active),
        reservation("cr-block", ReservationType::CapacityBlock, ReservationState::Active),
        reservation("cr-ending", ReservationType::CapacityBlock, ReservationState::Expiring),
    ]);
    let available = |case: &Case| {
        let listed = case.listed();
        let ids = listed.available().filter_map(|offering| {
            offering
                .requirements
                .get(aws::CAPACITY_RESERVATION_ID)
                .single()
                .cloned()
        });
        ids.map(|id| id.to_string()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(available(&case), "cr-1 cr-block");
    let listed = case.listed();
    let reserved = listed
        .offerings
        .iter()
        .find(|offering| offering.reservation_capacity.is_some());
    let reserved = reserved.expect("there is a reservation");
    assert_eq!(
        (reserved.price, reserved.reservation_capacity),
        (0.096 / 10_000_000.0, Some(3))
    );
    assert!(listed.requirements.get(labels::CAPACITY_TYPE).has("reserved"));
    case.shifted.insert("usw2-az1".to_owned());
    assert_eq!(available(&case), "");
    assert_eq!(case.available(), "on-demand/b spot/b");
    case.reserved_capacity = false;
    assert_eq!(case.listed().offerings.len(), 6);
}

#[test]
fn a_partition_group_multiplies_the_offerings() {
    let mut case = case();
    case.group = Some(PlacementGroupInfo {
        id: "pg-1".to_owned(),
        strategy: "partition".to_owned(),
        partitions: 3,
        ..PlacementGroupInfo::default()
    });
    let listed = case.listed();
    assert_eq!(listed.offerings.len(), 18);
    let partition = listed.offerings[1].requirements.get(aws::PLACEMENT_GROUP_PARTITION);
    assert!(partition.has("2"));
    assert!(listed.requirements.get(aws::PLACEMENT_GROUP_PARTITION).has("3"));
    assert!(listed.requirements.get(aws::PLACEMENT_GROUP_ID).has("pg-1"));
}

/// AW24.10.8
#[test]
fn a_type_without_a_price_is_sold_for_what_the_user_says_it_costs() {
    let mut case = case();
    case.info.name = "m99.large".to_owned();
    assert_eq!(case.available(), "", "AWS names no price");
    case.own_prices.insert("m99.large".to_owned(), 0.5);
    assert_eq!(case.available(), "on-demand/a spot/a on-demand/b spot/b");
    assert!(case.listed().offerings.iter().all(|offering| offering.price == 0.5));
    let mut priced = self::case();
    priced.own_prices.insert("m5.large".to_owned(), 0.5);
    assert!(
        priced.listed().offerings.iter().all(|offering| offering.price == 0.096),
        "AWS's own prices come first"
    );
}

/// Sells again what it finds, dearer.
struct Resale;

impl OfferingSource for Resale {
    fn amend(&self, _: &Shape, buyer: Buyer<'_>, offerings: &mut Vec<Offering>) {
        assert_eq!(buyer.zones.len(), 2);
        let again: Vec<Offering> = offerings.iter().cloned().map(dearer).collect();
        offerings.extend(again);
    }

    fn version(&self) -> u64 {
        0
    }
}

fn dearer(mut offering: Offering) -> Offering {
    offering.price += 100.0;
    offering
}

/// AW24.10.9
#[test]
fn other_sources_are_asked_last_and_see_everything_before_them() {
    let mut case = case();
    let status = case.class.status.as_mut().unwrap();
    status.capacity_reservations = Some(vec![reservation(
        "cr-1",
        ReservationType::Default,
        ReservationState::Active,
    )]);
    case.group = Some(PlacementGroupInfo {
        id: "pg-1".to_owned(),
        strategy: "partition".to_owned(),
        partitions: 2,
        ..PlacementGroupInfo::default()
    });
    let before = case.listed().offerings.len();
    assert_eq!(before, 14);
    case.sources = vec![Arc::new(Resale), Arc::new(Resale)];
    let listed = case.listed();
    assert_eq!(listed.offerings.len(), 4 * before);
    let twice = listed.offerings.iter().filter(|offering| offering.price > 200.0);
    assert_eq!(twice.count(), before, "the second sees what the first added");
}
