use expect_test::{Expect, expect};
use model::{CapacityType, vocabulary};

use super::*;

const OFFER: &str = r#"{"Price": 0.1, "Requirements": [
    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
    {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}]}"#;

/// A file with one entry: these fields beside name, platform and one offering.
fn entry(fields: &str) -> String {
    format!(
        r#"[{{"name": "m5.large", "architecture": "amd64", "operatingSystems": ["linux"], "offerings": [{OFFER}], {fields}}}]"#
    )
}

/// A file with one type whose only offering has these fields beside its requirements.
fn offering(fields: &str) -> String {
    let offer = OFFER.replacen(r#""Price": 0.1"#, fields, 1);
    entry(r#""resources": {"cpu": 2}"#).replacen(OFFER, &offer, 1)
}

fn only(catalog: &Catalog) -> Arc<InstanceType> {
    let shapes: Vec<_> = catalog.all_shapes().cloned().collect();
    let [shape] = <[_; 1]>::try_from(shapes).expect("the catalog has one shape");
    shape
}

fn whole_message(error: &CatalogError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text += &format!(": {inner}");
        cause = inner.source();
    }
    text
}

#[track_caller]
fn check_refused(text: &str, expected: Expect) {
    let error = Catalog::parse("types.json", text).expect_err("the file is bad");
    let message = whole_message(&error);
    assert!(!message.contains('\n'), "one line: {message}");
    expected.assert_eq(&message);
}

#[test]
fn bad_files_are_refused_in_one_line_that_names_file_entry_and_field() {
    check_refused(
        "[",
        expect!["types.json: is not JSON: EOF while parsing a list at line 1 column 1"],
    );
    check_refused(
        "3",
        expect!["types.json: must be a list of instance types, or an object with byNodePool"],
    );
    check_refused("{}", expect!["types.json: byNodePool: is missing"]);
    check_refused(
        r#"{"byNodePool": {"a": 3}}"#,
        expect!["types.json: byNodePool: invalid type: integer `3`, expected a sequence"],
    );
    check_refused(
        "[7]",
        expect!["types.json, entry 1: the entry: invalid type: integer `7`, expected an instance type"],
    );
    check_refused(
        r#"[{"name": "x"}]"#,
        expect!["types.json, entry 1 (x): the entry: missing field `offerings`"],
    );
    check_refused(
        r#"[{"name": "", "offerings": []}]"#,
        expect!["types.json, entry 1 (): name: is empty"],
    );
    check_refused(
        r#"[{"name": "x", "offerings": [], "operatingSystems": ["linux"]}]"#,
        expect!["types.json, entry 1 (x): architecture: is missing, and there are no requirements in its place"],
    );
    check_refused(
        &entry(r#""resources": {"cpu": "2O"}"#),
        expect![[r#"types.json, entry 1 (m5.large): resources.cpu: "2O" is not a quantity: unknown suffix "O""#]],
    );
    check_refused(
        &entry(r#""resources": {"cpu": "-1"}"#),
        expect!["types.json, entry 1 (m5.large): resources.cpu: -1 is negative"],
    );
    check_refused(
        &entry(r#""overhead": {"kubeReserved": {"memory": "-1Gi"}}"#),
        expect!["types.json, entry 1 (m5.large): overhead.kubeReserved.memory: -1Gi is negative"],
    );
    check_refused(
        &entry(r#""requirements": [{"key": "a", "operator": "Gt", "values": ["x"]}]"#),
        expect![[r#"types.json, entry 1 (m5.large): requirements[0]: Gt on a needs a whole number, not "x""#]],
    );
    check_refused(
        &entry(r#""requirements": [{"key": "a", "operator": "Is"}]"#),
        expect![
            "types.json, entry 1 (m5.large): requirements[0].operator: unknown variant `Is`, expected one of `In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt`, `Lt`, `Gte`, `Lte`"
        ],
    );
    check_refused(
        &offering(r#""Price": "free""#),
        expect![[r#"types.json, entry 1 (m5.large): offerings[0].Price: invalid type: string "free", expected f64"#]],
    );
    check_refused(
        &offering(r#""Price": -1"#),
        expect!["types.json, entry 1 (m5.large): offerings[0].Price: -1 is not a price"],
    );
    check_refused(
        &offering(r#""Price": 1, "ReservationCapacity": -2"#),
        expect![
            "types.json, entry 1 (m5.large): offerings[0].ReservationCapacity: invalid value: integer `-2`, expected u32"
        ],
    );
    check_refused(
        &entry(r#""resources": {}"#).replace(r#"["spot"]"#, r#"["sport"]"#),
        expect![[
            r#"types.json, entry 1 (m5.large): offerings[0].Requirements: "sport" is not a capacity type: use on-demand, spot or reserved"#
        ]],
    );
    check_refused(
        &entry(r#""resources": {}"#).replace(r#"["a"]"#, r#"["a", "b"]"#),
        expect![
            "types.json, entry 1 (m5.large): offerings[0].Requirements: has to name one value for topology.kubernetes.io/zone"
        ],
    );
    check_refused(
        r#"{"byNodePool": {"blue": [{"name": "x", "offerings": [{}]}]}}"#,
        expect!["types.json, byNodePool blue, entry 1 (x): offerings[0]: missing field `Price`"],
    );
}

#[test]
fn an_absent_file_is_named() {
    let error = Catalog::load(Path::new("no/such/types.json")).expect_err("there is no such file");
    assert!(
        whole_message(&error).starts_with("no/such/types.json: cannot be read: "),
        "{error:?}"
    );
}

#[test]
fn a_plain_entry_gets_the_labels_and_overhead_that_upstream_derives() {
    let catalog = Catalog::parse("f", &entry(r#""resources": {"cpu": "2", "memory": "8Gi"}"#)).unwrap();
    let shape = only(&catalog);
    expect![[
        "karpenter.kwok.sh/instance-cpu In [2], karpenter.kwok.sh/instance-family In [m5], \
         karpenter.kwok.sh/instance-memory In [8Gi], karpenter.kwok.sh/instance-size In [large], \
         karpenter.sh/capacity-type In [spot], kubernetes.io/arch In [amd64], kubernetes.io/os In [linux], \
         node.kubernetes.io/instance-type In [m5.large], topology.kubernetes.io/zone In [a]"
    ]]
    .assert_eq(&shape.requirements.to_string());
    assert_eq!(shape.capacity.to_string(), "cpu=2 memory=8Gi pods=110");
    assert_eq!(shape.allocatable().to_string(), "cpu=1900m memory=8182Mi pods=110");
    assert!(
        shape.offerings[0].available,
        "offerings are available unless the file says otherwise"
    );
}

#[test]
fn listed_requirements_and_overhead_stand_as_they_are() {
    let fields = r#""resources": {"cpu": "2"}, "overhead": {"systemReserved": {"cpu": "500m"}},
        "requirements": [{"key": "team/gpu", "operator": "DoesNotExist"}, {"key": "size", "operator": "Gte", "values": ["3"]}]"#;
    let catalog = Catalog::parse("f", &entry(fields)).unwrap();
    let shape = only(&catalog);
    assert_eq!(shape.requirements.to_string(), "size Exists >=3, team/gpu DoesNotExist");
    assert_eq!(
        shape.capacity.to_string(),
        "cpu=2",
        "nothing is derived, not even the number of pods"
    );
    assert_eq!(shape.allocatable().to_string(), "cpu=1500m");
    assert!(catalog.vocabulary().is_well_known("team/gpu"));
    assert!(catalog.vocabulary().is_well_known("karpenter.kwok.sh/instance-cpu"));
    assert!(catalog.vocabulary().is_restricted("karpenter.kwok.sh/other"));
}

#[test]
fn offerings_can_be_unavailable_reserved_and_of_another_size() {
    let text = offering(
        r#""Price": 0, "Available": false, "ReservationCapacity": 3, "CapacityOverride": {"cpu": "4"},
           "OverheadOverride": {"kubeReserved": {"cpu": "1"}}"#,
    )
    .replace(r#"["spot"]"#, r#"["reserved"]"#);
    let shape = only(&Catalog::parse("f", &text).unwrap());
    let offering = &shape.offerings[0];
    assert_eq!(offering.capacity_type, CapacityType::Reserved);
    assert_eq!((offering.available, offering.reservation_capacity), (false, Some(3)));
    assert_eq!(
        shape.allocatable_under(offering).get("cpu").to_string(),
        "2900m",
        "the capacity is replaced, the overhead comes on top"
    );
}

#[test]
fn pools_can_have_catalogs_of_their_own() {
    let text = format!(
        r#"{{"byNodePool": {{"blue": {}, "empty": []}}, "reservationIDLabel": "cloud/reservation",
            "unsupportedProvisioners": ["old.csi"], "unsupportedTopologyKeys": ["old/zone"], "comment": "x"}}"#,
        entry(
            r#""resources": {"cpu": 2}, "dynamicResources": {"resourceSliceTemplates": [{"driver": "d", "pool": "p"}]}"#
        )
    );
    let catalog = Catalog::parse("f", &text).unwrap();
    assert_eq!(catalog.shapes(&"blue".into()).len(), 1);
    assert_eq!(catalog.shapes(&"empty".into()).len(), 0);
    assert_eq!(catalog.shapes(&"unheard-of".into()).len(), 0);
    assert!(catalog.shapes(&"blue".into())[0].dynamic_resources.is_some());
    let words = catalog.vocabulary();
    assert_eq!(words.reservation_id, Some("cloud/reservation".into()));
    assert!(words.unsupported_provisioners.contains("old.csi"));
    assert!(words.unsupported_topology_keys.contains("old/zone"));
    assert_eq!(catalog.ignored_fields, ["comment"]);
    check_round_trip(&catalog);
}

#[test]
fn unread_fields_are_reported_with_their_place() {
    let text = offering(r#""Price": 1, "Prise": 2"#).replacen("{", r#"{"overhaed": {}, "#, 1);
    let catalog = Catalog::parse("f", &text).unwrap();
    expect![[r#"
        [
            "entry 1 (m5.large): overhaed",
            "entry 1 (m5.large): offerings[0].Prise",
        ]
    "#]]
    .assert_debug_eq(&catalog.ignored_fields);
}

#[track_caller]
fn check_round_trip(catalog: &Catalog) {
    let text = catalog.to_json();
    let again = Catalog::parse("written.json", &text).expect("what was written can be read");
    let shapes = |catalog: &Catalog| catalog.all_shapes().cloned().collect::<Vec<_>>();
    assert!(shapes(catalog) == shapes(&again), "the shapes come back unchanged");
    assert_eq!(text, again.to_json());
}

#[test]
fn what_is_written_is_read_back_the_same() {
    check_round_trip(&Catalog::ec2());
    check_round_trip(&Catalog::generic());
    check_round_trip(
        &Catalog::parse(
            "f",
            &entry(r#""requirements": [{"key": "size", "operator": "Lt", "values": ["9"]}]"#),
        )
        .unwrap(),
    );
}

#[test]
fn shapes_that_can_be_derived_are_written_in_the_form_that_upstream_reads() {
    let text = Catalog::ec2().to_json();
    assert!(!text.contains("\"requirements\"") && !text.contains("\"overhead\""));
}

#[test]
fn the_embedded_catalog_has_real_shapes_and_says_that_spot_prices_are_not_real() {
    let catalog = Catalog::ec2();
    assert_eq!(catalog.all_shapes().count(), 853);
    assert!(
        catalog
            .spot_prices
            .note()
            .is_some_and(|note| note.contains("synthetic"))
    );
    let shape = catalog
        .all_shapes()
        .find(|shape| shape.name == "m5.large")
        .expect("m5.large is sold");
    assert_eq!(
        shape.capacity.to_string(),
        "cpu=2 ephemeral-storage=20Gi memory=8Gi pods=32"
    );
    assert_eq!(shape.requirements.labels()["kubernetes.io/arch"], "amd64");
    let zones = shape.requirements.get(vocabulary::ZONE).listed().unwrap();
    assert_eq!(
        zones.iter().map(model::LabelValue::as_str).collect::<Vec<_>>(),
        ["us-west-2a", "us-west-2b", "us-west-2c", "us-west-2d"]
    );
    let price = |kind| {
        shape
            .offerings
            .iter()
            .find(|offer| offer.capacity_type == kind)
            .unwrap()
            .price
    };
    assert_eq!(price(CapacityType::OnDemand), 0.102);
    assert!((price(CapacityType::Spot) - 0.0714).abs() < 1e-9);
}

/// Upstream's own example lists each EC2 type once for linux and once for windows.
#[test]
fn one_name_may_stand_for_two_shapes() {
    let one = entry(r#""resources": {"cpu": 2}"#);
    let two = one.replacen("linux", "windows", 1);
    let both = format!("{},{}", &one[..one.len() - 1], &two[1..]);
    assert_eq!(Catalog::parse("f", &both).unwrap().all_shapes().count(), 2);
}

#[test]
fn the_generic_catalog_has_upstreams_names_sizes_and_prices() {
    let catalog = Catalog::generic();
    assert_eq!(catalog.all_shapes().count(), 144);
    let shape = catalog
        .all_shapes()
        .find(|shape| shape.name == "c-16x-amd64-linux")
        .unwrap();
    assert_eq!(
        shape
            .requirements
            .get("karpenter.kwok.sh/instance-size")
            .single()
            .unwrap()
            .as_str(),
        "16"
    );
    let first = catalog.all_shapes().next().unwrap();
    assert_eq!(first.name, "c-1x-amd64-linux");
    assert_eq!(
        first.capacity.to_string(),
        "cpu=1 ephemeral-storage=20Gi memory=2Gi pods=16"
    );
    assert_eq!(first.offerings[0].price, 0.019003238553599998);
    assert_eq!(first.offerings[1].price, 0.027147483648);
}

#[test]
fn devices_come_with_a_shape() {
    let text = entry(
        r#""resources": {"cpu": 2}, "dynamicResources": {
            "resourceSliceTemplates": [
                {"driver": "gpu.example.com", "pool": "gpus", "sharedCounters": [
                    {"name": "memory", "counters": {"bytes": {"value": "80Gi"}}}]},
                {"driver": "gpu.example.com", "pool": "gpus", "devices": [
                    {"name": "gpu-0", "attributes": {"model": {"string": "A100"}, "cores": {"int": 108}},
                     "capacity": {"memory": {"value": "40Gi", "requestPolicy": {"default": "4Gi"}}},
                     "allowMultipleAllocations": true,
                     "consumesCounters": [{"counterSet": "memory", "counters": {"bytes": {"value": "40Gi"}}}]},
                    {"name": "gpu-1"}]}],
            "attributeBindings": [{"attribute": "example.com/root", "devices": [
                {"driver": "gpu.example.com", "pool": "gpus", "device": "gpu-0"},
                {"driver": "gpu.example.com", "pool": "gpus", "device": "gpu-1"}]}]}"#,
    );
    let catalog = Catalog::parse("f", &text).unwrap();
    let shape = only(&catalog);
    let devices = shape.dynamic_resources.as_ref().unwrap();
    let [counters, gpus] = &devices.templates[..] else {
        panic!("{devices:?}");
    };
    assert_eq!(counters.shared_counters[0].counters["bytes"].to_string(), "80Gi");
    assert_eq!(gpus.devices.len(), 2);
    assert!(gpus.devices[0].shareable);
    assert_eq!(gpus.devices[0].consumes[0].counters["bytes"].to_string(), "40Gi");
    assert_eq!(devices.bindings[0].devices[1].to_string(), "gpu.example.com/gpus/gpu-1");
    check_round_trip(&catalog);
}

#[test]
fn devices_that_cannot_be_read_are_named_with_their_place() {
    for (devices, complaint) in [
        (
            r#"{"resourceSliceTemplates": [{"driver": "d"}]}"#,
            "dynamicResources.resourceSliceTemplates[0]: missing field `pool`",
        ),
        (
            r#"{"resourceSliceTemplates": [{"driver": "d", "pool": "p", "devices": [
                {"name": "a", "capacity": {"memory": {"value": "much"}}}]}]}"#,
            "dynamicResources.resourceSliceTemplates[0].devices[0].capacity[memory].value: ",
        ),
        (
            r#"{"resourceSliceTemplates": [{"driver": "d", "pool": "p", "devices": [{"name": "a"}],
                "sharedCounters": [{"name": "c", "counters": {}}]}]}"#,
            "dynamicResources.resourceSliceTemplates[0]: has devices and sharedCounters",
        ),
        (r#"{"slices": []}"#, "unknown field `slices`"),
    ] {
        let text = entry(&format!(r#""resources": {{"cpu": 2}}, "dynamicResources": {devices}"#));
        let refused = Catalog::parse("f", &text).unwrap_err().to_string();
        assert!(refused.contains(complaint), "{refused}");
    }
}
