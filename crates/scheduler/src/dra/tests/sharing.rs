//! Devices that several claims have at once, and counters that several devices draw on.

use expect_test::expect;
use model::dra::{
    Device, DeviceAsk, DeviceId, Portions, Reach, RequestPolicy, ResourceClaim, ResourceSlice, ResourceSliceTemplate,
};

use super::{check, fixture::*};

fn memory(amount: &str) -> DeviceAsk {
    DeviceAsk {
        capacity: amounts(&[("memory", amount)]),
        ..one("gpu")
    }
}

fn policy(default: Option<&str>, portions: Portions) -> Option<RequestPolicy> {
    Some(RequestPolicy {
        default: default.map(quantity),
        portions,
    })
}

fn claims(fixture: Fixture, asks: &[(&str, DeviceAsk)]) -> Fixture {
    asks.iter().fold(fixture, |fixture, (name, ask)| {
        fixture.claim(claim(name, vec![ask.clone()]))
    })
}

fn own(policy: Option<RequestPolicy>) -> Fixture {
    Fixture::new().kind(kind("type", vec![template(vec![shareable("gpu", "16Gi", policy)])]))
}

/// SC15.23.8
#[test]
fn portions_are_packed_until_the_device_is_used_up() {
    let fixture = claims(
        own(None),
        &[
            ("a", memory("4Gi")),
            ("b", memory("4Gi")),
            ("c", memory("4Gi")),
            ("d", memory("8Gi")),
        ],
    );
    check(
        &fixture,
        &["p=a", "q=b", "r=c", "s=d"],
        expect![[r#"
            p -> #0 type topology.kubernetes.io/zone In [z1 z2] gpu.example.com
            q -> #0 type topology.kubernetes.io/zone In [z1 z2] gpu.example.com
            r -> #0 type topology.kubernetes.io/zone In [z1 z2] gpu.example.com
            s -> #1 type topology.kubernetes.io/zone In [z1 z2] gpu.example.com
            a  type: gpu*[4Gi]
            b  type: gpu*[4Gi]
            c  type: gpu*[4Gi]
            d  type: gpu*[8Gi]
        "#]],
    );
}

/// SC15.23.8
#[test]
fn the_portion_of_a_pod_that_moves_is_free() {
    let device = DeviceId::new(GPU, "pool", "gpu");
    let portion = |amount: &str| Some(amounts(&[("memory", amount)]));
    let fixture = claims(
        Fixture::new()
            .kind(kind("plain", vec![]))
            .slice(slice("pool", vec![shareable("gpu", "16Gi", None)], Reach::Everywhere))
            .claim(holding(
                claim("live", vec![one("gpu")]),
                &device,
                portion("4Gi"),
                &["stayer"],
            ))
            .claim(holding(
                claim("old", vec![one("gpu")]),
                &device,
                portion("10Gi"),
                &["mover"],
            )),
        &[("new", memory("10Gi")), ("more", memory("3Gi"))],
    );
    assert!(fixture.placed(&["p=new"]).contains("no instance type"));
    check(
        &fixture,
        &["p=new", "q=more", "mover@gone"],
        expect![[r#"
            p -> #0 plain topology.kubernetes.io/zone In [z1 z2] gpu.example.com
            q -> no instance type has the devices left for request "r0" of resource claim default/more
            mover -> #0 plain topology.kubernetes.io/zone In [z1 z2] gpu.example.com
            new  plain: gpu[10Gi]
        "#]],
    );
}

/// SC15.23.8
#[test]
fn what_a_device_does_not_give_cannot_be_had() {
    let values = || Portions::OneOf(["4Gi", "8Gi", "16Gi"].map(quantity).to_vec());
    let range = || Portions::Range {
        min: quantity("2Gi"),
        max: Some(quantity("12Gi")),
        step: Some(quantity("2Gi")),
    };
    let elsewhere = DeviceAsk {
        capacity: amounts(&[("memory", "4Gi"), ("bandwidth", "10")]),
        ..one("gpu")
    };
    for (policy, ask, expected) in [
        (None, memory("16Gi"), Some("16Gi")),
        (None, memory("17Gi"), None),
        (None, elsewhere, None),
        (None, one("gpu"), Some("16Gi")),
        (policy(Some("4Gi"), Portions::Any), one("gpu"), Some("4Gi")),
        (policy(Some("4Gi"), values()), memory("5Gi"), Some("8Gi")),
        (policy(Some("4Gi"), values()), memory("32Gi"), None),
        (policy(None, range()), memory("1Gi"), Some("2Gi")),
        (policy(None, range()), memory("5Gi"), Some("6Gi")),
        (policy(None, range()), memory("6Gi"), Some("6Gi")),
        (policy(None, range()), memory("13Gi"), None),
        (policy(None, range()), one("gpu"), None),
        (policy(Some("3Gi"), range()), one("gpu"), Some("3Gi")),
    ] {
        let placed = claims(own(policy.clone()), &[("a", ask.clone())]).placed(&["p=a"]);
        match expected {
            Some(amount) => assert!(
                placed.ends_with(&format!("a  type: gpu*[{amount}]\n")),
                "{policy:?} {ask:?} {placed}"
            ),
            None => assert!(placed.contains("no instance type"), "{policy:?} {ask:?} {placed}"),
        }
    }
}

/// SC15.23.8: the default portion lets pods share.
#[test]
fn a_default_portion_lets_pods_share() {
    let fixture = own(policy(Some("4Gi"), Portions::Any)).gpu_claims(&["a", "b", "c"]);
    let placed = fixture.placed(&["p=a", "q=b", "r=c"]);
    assert_eq!(placed.matches("-> #0").count(), 3, "{placed}");
}

/// A device that is had whole has to have as much as is asked for.
#[test]
fn a_whole_device_has_to_suffice() {
    let whole = || Device {
        shareable: false,
        ..shareable("gpu", "16Gi", None)
    };
    let fixture = claims(
        Fixture::new().kind(kind("type", vec![template(vec![whole()])])),
        &[("a", memory("16Gi")), ("b", memory("17Gi"))],
    );
    check(
        &fixture,
        &["p=a", "q=b"],
        expect![[r#"
            p -> #0 type topology.kubernetes.io/zone In [z1 z2] gpu.example.com
            q -> no instance type has the devices left for request "r0" of resource claim default/b
            a  type: gpu*
        "#]],
    );
}

fn partitioned(budget: &[(&str, &str)], profiles: usize, each: &[(&str, &str)]) -> Fixture {
    let names: Vec<String> = (0..profiles).map(|number| format!("part-{number}")).collect();
    let parts = names.iter().map(|name| drawing(name, "set", each)).collect();
    let counters = ResourceSliceTemplate {
        shared_counters: counters("set", budget),
        ..template(vec![])
    };
    Fixture::new()
        .kind(kind("type", vec![counters, template(parts)]))
        .gpu_claims(&["a", "b", "c"])
}

/// SC15.23.9
#[test]
fn devices_draw_on_their_counters_within_the_budget() {
    check(
        &partitioned(&[("memory", "80Gi")], 3, &[("memory", "40Gi")]),
        &["p=a", "q=b", "r=c"],
        expect![[r#"
            p -> #0 type topology.kubernetes.io/zone In [z1 z2] gpu.example.com
            q -> #0 type topology.kubernetes.io/zone In [z1 z2] gpu.example.com
            r -> #1 type topology.kubernetes.io/zone In [z1 z2] gpu.example.com
            a  type: part-0*
            b  type: part-1*
            c  type: part-0*
        "#]],
    );
    let hosts = |fixture: Fixture| {
        let placed = fixture.placed(&["p=a", "q=b"]);
        (placed.matches("-> #0").count(), placed.matches("-> #1").count())
    };
    let both = &[("memory", "80Gi"), ("compute", "100")];
    assert_eq!(
        hosts(partitioned(both, 2, &[("memory", "40Gi"), ("compute", "50")])),
        (2, 0)
    );
    assert_eq!(
        hosts(partitioned(both, 2, &[("memory", "10Gi"), ("compute", "60")])),
        (1, 1)
    );
    assert_eq!(
        hosts(partitioned(&[("memory", "40Gi")], 1, &[("memory", "80Gi")])),
        (0, 0)
    );
    assert_eq!(
        hosts(partitioned(&[("memory", "40Gi")], 1, &[("storage", "1Gi")])),
        (0, 0)
    );
}

fn published(budget: &[(&str, &str)], devices: Vec<Device>) -> Fixture {
    let with_counters = ResourceSlice {
        name: "counters".into(),
        slice_count: 2,
        shared_counters: counters("set", budget),
        ..slice("pool", vec![], Reach::Everywhere)
    };
    Fixture::new()
        .kind(kind("plain", vec![]))
        .slice(with_counters)
        .slice(ResourceSlice {
            slice_count: 2,
            ..slice("pool", devices, Reach::Everywhere)
        })
        .gpu_claims(&["a", "b"])
}

/// SC15.23.9
#[test]
fn published_devices_draw_on_counters_wherever_they_are_used() {
    let half = |name: &str| drawing(name, "set", &[("memory", "40Gi")]);
    let fixture = published(&[("memory", "80Gi")], vec![half("p-0"), half("p-1"), half("p-2")]);
    assert!(
        fixture
            .placed(&["p=a", "q=b"])
            .ends_with("a  plain: p-0\nb  plain: p-1\n")
    );
    let held = DeviceId::new(GPU, "pool", "p-2");
    let fixture = fixture.claim(holding(claim("old", vec![one("gpu")]), &held, None, &["x"]));
    assert!(fixture.placed(&["p=a", "q=b"]).contains("q -> no instance type"));
}

/// SC15.23.9
#[test]
fn an_unknown_counter_makes_its_pool_invalid() {
    let fixture = published(
        &[("memory", "80Gi")],
        vec![drawing("p-0", "other", &[("memory", "1Gi")]), Device::named("p-1")],
    );
    assert!(fixture.placed(&["p=a"]).contains("no instance type"));
    let all = fixture.claim(ResourceClaim {
        requests: vec![request("every", all("gpu"))],
        ..claim("c", vec![])
    });
    assert!(all.placed(&["p=c"]).contains("is invalid"));
}

/// Of one host's types only one will exist, so the host is charged for the greediest of them.
#[test]
fn a_host_is_charged_for_its_greediest_type() {
    let fixture = published(
        &[("memory", "80Gi")],
        vec![
            drawing("p-0", "set", &[("memory", "40Gi")]),
            drawing("p-1", "set", &[("memory", "40Gi")]),
            drawing("p-2", "set", &[("memory", "40Gi")]),
        ],
    );
    // Two types of one node, each promised the same device: that is 40Gi, not 80Gi.
    let fixture = fixture.kind(kind("other", vec![]));
    let placed = fixture.placed(&["p=a", "q=b"]);
    assert!(
        placed.ends_with("a  other: p-0 | plain: p-0\nb  other: p-1 | plain: p-1\n"),
        "{placed}"
    );
}
