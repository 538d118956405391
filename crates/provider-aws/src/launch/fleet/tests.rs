use jiff::{SignedDuration, Timestamp};
use model::{Overhead, Quantity, ResourceName, Resources};

use super::*;
use crate::ports::{Metadata, Placement, SubnetInfo, TemplateData};

fn offering(capacity_type: CapacityType, zone: &str, price: f64, reservation: Option<&str>) -> Offering {
    let mut requirements: Requirements = [
        Requirement::one_of(vocabulary::CAPACITY_TYPE, [capacity_type.as_str()]),
        Requirement::one_of(vocabulary::ZONE, [zone]),
    ]
    .into_iter()
    .collect();
    requirements.extend(reservation.map(|id| Requirement::one_of(aws::CAPACITY_RESERVATION_ID, [id])));
    Offering {
        capacity_type,
        zone: zone.into(),
        price,
        available: true,
        requirements,
        reservation_capacity: reservation.map(|_| 1),
        capacity_override: None,
        overhead_override: None,
    }
}

fn shape(name: &str, pods: i64, offerings: Vec<Offering>) -> InstanceType {
    let capacity = Resources::new().with(ResourceName::PODS, Quantity::from_int(pods));
    InstanceType::new(
        name.into(),
        Requirements::default(),
        offerings,
        capacity,
        Overhead::default(),
    )
}

fn plan(name: &str, types: &[&str], reservation: Option<&str>, market: Option<MarketType>) -> Plan {
    Plan {
        name: name.to_owned(),
        tags: Tags::new(),
        data: TemplateData {
            tags: Vec::new(),
            volumes: Vec::new(),
            instance_profile: String::new(),
            detailed_monitoring: false,
            image_id: format!("ami-{name}"),
            user_data: String::new(),
            metadata: Metadata {
                endpoint: None,
                ipv6: None,
                hop_limit: None,
                tokens: None,
            },
            interfaces: Vec::new(),
            placement: Placement::default(),
            enclaves: false,
            nested_virtualization: None,
            reservation: None,
            market,
        },
        types: types.iter().map(|name| (*name).to_owned()).collect(),
        reservation: reservation.map(str::to_owned),
    }
}

struct Case {
    capacity_type: CapacityType,
    types: Vec<InstanceType>,
    templates: Vec<Plan>,
    zones: &'static [&'static str],
    allocation: Allocation,
    context: Option<&'static str>,
}

impl Case {
    fn request(&self) -> Result<FleetRequest, NothingToOffer> {
        let subnet = |zone: &&str| ((*zone).to_owned(), format!("subnet-{zone}"));
        let subnets = self.zones.iter().map(subnet).collect();
        request(Order {
            capacity_type: self.capacity_type,
            requirements: &Requirements::default(),
            types: &self.types,
            templates: &self.templates,
            subnets: &subnets,
            allocation: self.allocation,
            context: self.context,
            tags: &Tags::new(),
            token: "token",
        })
    }

    /// `template: type/zone/subnet/image@price …` per group.
    fn shown(&self) -> String {
        let one = |entry: &FleetOverride| {
            format!(
                "{}/{}/{}/{}@{}",
                entry.instance_type,
                entry.zone.as_deref().unwrap_or_default(),
                entry.subnet,
                entry.image_id.as_deref().unwrap_or_default(),
                entry.priority.unwrap_or_default()
            )
        };
        let group = |group: &FleetGroup| {
            let overrides: Vec<String> = group.overrides.iter().map(one).collect();
            format!("{}: {}", group.template_name, overrides.join(" "))
        };
        let request = self.request().expect("there is something to offer");
        request.groups.iter().map(group).collect::<Vec<_>>().join("; ")
    }
}

fn case() -> Case {
    use CapacityType::{OnDemand, Spot};
    Case {
        capacity_type: OnDemand,
        types: vec![
            shape(
                "m5.large",
                29,
                vec![
                    offering(OnDemand, "a", 0.1, None),
                    offering(Spot, "a", 0.04, None),
                    offering(OnDemand, "b", 0.1, None),
                    offering(OnDemand, "c", 0.1, None),
                ],
            ),
            shape("m6g.large", 10, vec![offering(OnDemand, "a", 0.08, None)]),
        ],
        templates: vec![
            plan("amd", &["m5.large"], None, None),
            plan("arm", &["m6g.large"], None, None),
        ],
        zones: &["a", "b"],
        allocation: Allocation::Price,
        context: None,
    }
}

/// AW24.11.14
#[test]
fn every_offering_with_a_subnet_is_an_override_with_its_price_as_priority() {
    let mut case = case();
    assert_eq!(
        case.shown(),
        "amd: m5.large/a/subnet-a/ami-amd@0.1 m5.large/b/subnet-b/ami-amd@0.1; arm: m6g.large/a/subnet-a/ami-arm@0.08"
    );
    case.capacity_type = CapacityType::Spot;
    assert_eq!(
        case.shown(),
        "amd: m5.large/a/subnet-a/ami-amd@0.04",
        "templates without overrides are left out"
    );
    case.zones = &[];
    assert_eq!(case.request(), Err(NothingToOffer));
}

/// AW24.11.12, AW24.11.13
#[test]
fn markets_and_strategies_follow_the_capacity_type() {
    let market = |capacity_type, allocation, special| {
        let mut case = case();
        case.capacity_type = capacity_type;
        case.allocation = allocation;
        if capacity_type == CapacityType::Reserved {
            case.types[0]
                .offerings
                .push(offering(CapacityType::Reserved, "a", 0.1, Some("cr-1")));
            case.templates = vec![plan("amd", &["m5.large"], Some("cr-1"), special)];
        }
        let market = case.request().unwrap().market;
        (market.target(), market.strategy())
    };
    use Allocation::{Price, Priority};
    use CapacityType::{OnDemand, Reserved, Spot};
    assert_eq!(market(Spot, Price, None), ("spot", Some("price-capacity-optimized")));
    assert_eq!(
        market(Spot, Priority, None),
        ("spot", Some("capacity-optimized-prioritized"))
    );
    assert_eq!(market(OnDemand, Price, None), ("on-demand", Some("lowest-price")));
    assert_eq!(market(OnDemand, Priority, None), ("on-demand", Some("prioritized")));
    assert_eq!(market(Reserved, Price, None), ("on-demand", Some("lowest-price")));
    assert_eq!(
        market(Reserved, Price, Some(MarketType::CapacityBlock)),
        ("capacity-block", None)
    );
    assert_eq!(
        market(Reserved, Price, Some(MarketType::InterruptibleReservation)),
        ("reserved-capacity", None)
    );
    let mut case = case();
    assert_eq!(case.request().unwrap().context, None);
    case.context = Some("context");
    assert_eq!(case.request().unwrap().context.as_deref(), Some("context"));
}

/// AW24.11.17
#[test]
fn each_reservation_is_asked_for_through_its_own_template() {
    let mut case = case();
    case.capacity_type = CapacityType::Reserved;
    let reserved = |zone, id| offering(CapacityType::Reserved, zone, 0.1, Some(id));
    case.types = vec![shape(
        "m5.large",
        29,
        vec![reserved("a", "cr-1"), reserved("b", "cr-2")],
    )];
    case.templates = vec![
        plan("one", &["m5.large"], Some("cr-1"), None),
        plan("two", &["m5.large"], Some("cr-2"), None),
    ];
    assert_eq!(
        case.shown(),
        "one: m5.large/a/subnet-a/ami-one@0.1; two: m5.large/b/subnet-b/ami-two@0.1"
    );
}

/// AW24.11.22
#[test]
fn the_roomiest_subnet_of_each_zone_is_taken() {
    let subnet = |id: &str, addresses: i64| SubnetInfo {
        id: id.to_owned(),
        available_addresses: addresses,
        ..SubnetInfo::default()
    };
    let mut addresses = Addresses::new(SignedDuration::from_mins(1));
    addresses.refreshed(
        &[subnet("s1", 20), subnet("s2", 15), subnet("s3", 9)],
        Timestamp::UNIX_EPOCH,
    );
    let zone = |name: &str, subnets: &[&str]| ZoneInfo {
        zone: name.to_owned(),
        zone_id: None,
        subnets: subnets.iter().map(|id| (*id).to_owned()).collect(),
    };
    let zones = [zone("a", &["s1", "s2"]), zone("d", &["s3"])];
    let case = case();
    let choose = |addresses: &Addresses| {
        zonal_subnets(
            &zones,
            addresses,
            &case.types,
            CapacityType::OnDemand,
            &Requirements::default(),
        )
    };
    let (subnets, deductions) = choose(&addresses);
    assert_eq!(
        subnets,
        [("a".to_owned(), "s1".to_owned()), ("d".to_owned(), "s3".to_owned())].into()
    );
    assert_eq!(
        deductions,
        [("s1".to_owned(), 10)].into(),
        "the smallest node that may come, where one may"
    );
    addresses.deduct(&deductions);
    assert_eq!(choose(&addresses).0["a"], "s2");
}
