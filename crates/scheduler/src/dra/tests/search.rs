//! Which devices are found.

use expect_test::expect;
use model::{
    InstanceType,
    dra::{
        Ask, AttributeBinding, ConstraintRule, DeviceConstraint, DeviceCount, DeviceId, DeviceRequest, DeviceSelector,
        Reach, ResourceClaim, ResourceSlice, ResourceSliceTemplate,
    },
};

use super::{check, fixture::*};
use crate::dra::{Devices, HostView, PoolProblem};

fn numbered(count: usize) -> Vec<model::dra::Device> {
    let names: Vec<String> = (0..count).map(|number| format!("gpu-{number:02}")).collect();
    devices(&names.iter().map(String::as_str).collect::<Vec<_>>())
}

/// SC15.23.3
#[test]
fn two_claims_share_a_node_of_two_devices_and_need_two_of_one() {
    let fixture = |count| {
        Fixture::new()
            .kind(kind("type", vec![template(numbered(count))]))
            .gpu_claims(&["a", "b"])
    };
    check(
        &fixture(2),
        &["p=a", "q=b"],
        expect![[r#"
            p -> #0 type topology.kubernetes.io/zone In [z1 z2] gpu.example.com
            q -> #0 type topology.kubernetes.io/zone In [z1 z2] gpu.example.com
            a  type: gpu-00*
            b  type: gpu-01*
        "#]],
    );
    check(
        &fixture(1),
        &["p=a", "q=b"],
        expect![[r#"
            p -> #0 type topology.kubernetes.io/zone In [z1 z2] gpu.example.com
            q -> #1 type topology.kubernetes.io/zone In [z1 z2] gpu.example.com
            a  type: gpu-00*
            b  type: gpu-00*
        "#]],
    );
}

/// SC15.23.3
#[test]
fn all_means_every_device_and_at_least_one() {
    let fixture = Fixture::new()
        .kind(kind("none", vec![]))
        .kind(kind("three", vec![template(numbered(3))]))
        .kind(kind("many", vec![template(numbered(33))]))
        .claim(claim("a", vec![all("gpu")]))
        .gpu_claims(&["b"]);
    check(
        &fixture,
        &["p=a", "q=b", "r=a"],
        expect![[r#"
            p -> #0 three topology.kubernetes.io/zone In [z1 z2] gpu.example.com
            q -> #1 three,many topology.kubernetes.io/zone In [z1 z2] gpu.example.com
            r -> #0 three topology.kubernetes.io/zone In [z1 z2] gpu.example.com
            a  three: gpu-00* gpu-01* gpu-02*
            b  many: gpu-00* | three: gpu-00*
        "#]],
    );
}

/// SC15.23.3: all devices cannot be had where one is taken, or where some are not known.
#[test]
fn all_fails_where_a_device_is_taken_or_a_pool_is_not_whole() {
    let everywhere = |pool: &str, names: &[&str]| slice(pool, devices(names), Reach::Everywhere);
    let fixture = Fixture::new()
        .kind(kind("plain", vec![]))
        .slice(everywhere("pool", &["gpu-0", "gpu-1"]))
        .claim(claim("a", vec![all("gpu")]))
        .gpu_claims(&["b"]);
    check(
        &fixture,
        &["q=b", "p=a"],
        expect![[r#"
            q -> #0 plain topology.kubernetes.io/zone In [z1 z2] gpu.example.com
            p -> no instance type has the devices left for request "r0" of resource claim default/a
            b  plain: gpu-0
        "#]],
    );
    let incomplete = fixture.slice(ResourceSlice {
        slice_count: 2,
        ..everywhere("half", &["gpu-7"])
    });
    check(
        &incomplete,
        &["p=a", "q=b"],
        expect![[r#"
            p -> resource claim default/a, request "r0" asks for all devices, but pool gpu.example.com/half is incomplete: its driver has not published all slices yet
            q -> #0 plain topology.kubernetes.io/zone In [z1 z2] gpu.example.com
            b  plain: gpu-0
        "#]],
    );
    let invalid = incomplete.slice(everywhere("half", &["gpu-7", "gpu-7"]));
    assert!(invalid.placed(&["p=a"]).contains(&PoolProblem::Invalid.to_string()));
}

#[test]
fn only_the_newest_generation_of_a_pool_counts() {
    let named = |name: &str, generation, slice_count, devices| ResourceSlice {
        name: name.into(),
        generation,
        slice_count,
        ..slice("pool", devices, Reach::Everywhere)
    };
    let fixture = Fixture::new()
        .kind(kind("plain", vec![]))
        .slice(named("old", 1, 1, devices(&["gpu-0", "gpu-1"])))
        .slice(named("new", 2, 1, devices(&["gpu-2"])))
        .gpu_claims(&["a", "b"]);
    check(
        &fixture,
        &["p=a", "q=b"],
        expect![[r#"
            p -> #0 plain topology.kubernetes.io/zone In [z1 z2] gpu.example.com
            q -> no instance type has the devices left for request "r0" of resource claim default/b
            a  plain: gpu-2
        "#]],
    );
    let growing = fixture.slice(named("newer", 3, 2, devices(&["gpu-3"])));
    assert!(growing.placed(&["p=a"]).contains("no instance type"));
    let grown = growing.slice(named("newer-2", 3, 2, devices(&["gpu-4"])));
    assert!(
        grown
            .placed(&["p=a", "q=b"])
            .ends_with("a  plain: gpu-3\nb  plain: gpu-4\n")
    );
}

/// SC15.23.3
#[test]
fn devices_that_have_to_match_are_found_by_going_back() {
    let at = |name: &str, root: &str| with_attribute(model::dra::Device::named(name), "pcieRoot", root);
    let fixture = |attribute: &str| {
        Fixture::new()
            .kind(kind(
                "type",
                vec![template(vec![at("gpu-0", "a"), at("gpu-1", "b"), at("gpu-2", "b")])],
            ))
            .claim(ResourceClaim {
                constraints: vec![same(attribute)],
                ..claim("pair", vec![one("gpu"), one("gpu")])
            })
    };
    check(
        &fixture("gpu.example.com/pcieRoot"),
        &["p=pair"],
        expect![[r#"
            p -> #0 type topology.kubernetes.io/zone In [z1 z2] gpu.example.com
            pair  type: gpu-1* gpu-2*
        "#]],
    );
    assert!(
        fixture("gpu.example.com/missing")
            .placed(&["p=pair"])
            .contains("no instance type")
    );
}

/// SC15.23.3: a constraint may name some of the requests.
#[test]
fn a_constraint_binds_the_requests_that_it_names() {
    let at = |name: &str, root: &str| with_attribute(model::dra::Device::named(name), "root", root);
    let fixture = Fixture::new()
        .kind(kind(
            "type",
            vec![template(vec![at("gpu-0", "a"), at("gpu-1", "b"), at("gpu-2", "a")])],
        ))
        .claim(ResourceClaim {
            constraints: vec![DeviceConstraint {
                requests: ["r0".to_owned(), "r2".to_owned()].into(),
                ..same("gpu.example.com/root")
            }],
            ..claim("a", vec![one("gpu"), one("gpu"), one("gpu")])
        });
    assert!(fixture.placed(&["p=a"]).ends_with("a  type: gpu-0* gpu-1* gpu-2*\n"));
}

/// Values that are not known yet match where the provider says that they will, and never meet known ones.
#[test]
fn bindings_stand_for_values_that_are_not_known_yet() {
    let id = |device: &str| DeviceId::new(GPU, "own", device);
    let binding = |devices: &[&str]| AttributeBinding {
        attribute: "gpu.example.com/root".into(),
        devices: devices.iter().map(|name| id(name)).collect(),
    };
    let pair = ResourceClaim {
        constraints: vec![same("gpu.example.com/root")],
        ..claim("pair", vec![some("gpu", 2)])
    };
    let types = |bindings| {
        let mut own = numbered(4);
        own[0] = with_attribute(own[0].clone(), "root", "known");
        Fixture::new()
            .kind(bound_kind("type", vec![template(own)], bindings))
            .claim(pair.clone())
    };
    let chained = types(vec![binding(&["gpu-00", "gpu-01"]), binding(&["gpu-01", "gpu-03"])]);
    assert!(chained.placed(&["p=pair"]).ends_with("pair  type: gpu-01* gpu-03*\n"));
    for unbound in [vec![], vec![binding(&["gpu-02"])], vec![binding(&["gpu-00", "gpu-02"])]] {
        assert!(types(unbound).placed(&["p=pair"]).contains("no instance type"));
    }
}

/// SC15.23.3
#[test]
fn the_first_alternative_that_can_be_had_is_taken_and_named() {
    let alternatives = DeviceRequest {
        name: "gpu".into(),
        ask: Ask::FirstAvailable(vec![
            (
                "big".into(),
                where_(one("gpu"), "device.attributes['gpu.example.com'].size == 'big'"),
            ),
            ("two".into(), some("gpu", 2)),
        ]),
    };
    let fixture = Fixture::new()
        .kind(kind(
            "big",
            vec![template(vec![with_attribute(
                model::dra::Device::named("gpu-b"),
                "size",
                "big",
            )])],
        ))
        .kind(kind("small", vec![template(numbered(3))]))
        .kind(kind("tiny", vec![template(numbered(1))]))
        .claim(ResourceClaim {
            requests: vec![alternatives],
            ..claim("a", vec![])
        });
    check(
        &fixture,
        &["p=a"],
        expect![[r#"
            p -> #0 big,small topology.kubernetes.io/zone In [z1 z2] gpu.example.com
            a  big: gpu-b*(big) | small: gpu-00*(two) gpu-01*(two)
        "#]],
    );
}

/// SC15.23.3: every driver is named.
#[test]
fn two_drivers_are_both_named() {
    let nics = ResourceSliceTemplate {
        driver: "nic.example.com".into(),
        ..template(devices(&["nic-0"]))
    };
    let fixture = Fixture::new()
        .class("nic", "nic.example.com")
        .kind(kind("both", vec![template(numbered(1)), nics]))
        .kind(kind("gpus", vec![template(numbered(1))]))
        .gpu_claims(&["a"])
        .claim(claim("b", vec![one("nic")]));
    check(
        &fixture,
        &["p=a,b"],
        expect![[r#"
            p -> #0 both topology.kubernetes.io/zone In [z1 z2] gpu.example.com,nic.example.com
            a  both: gpu-00*
            b  both: nic-0*
        "#]],
    );
}

#[test]
fn class_and_request_both_choose() {
    let fixture = Fixture::new()
        .kind(kind(
            "type",
            vec![template(vec![
                model::dra::Device::named("plain"),
                with_attribute(model::dra::Device::named("fast"), "speed", "fast"),
            ])],
        ))
        .claim(claim(
            "a",
            vec![where_(one("gpu"), "device.attributes[device.driver].speed == 'fast'")],
        ));
    assert!(fixture.placed(&["p=a"]).ends_with("a  type: fast*\n"));
}

#[test]
fn published_devices_come_before_templates_and_are_given_to_one_host() {
    let fixture = Fixture::new()
        .kind(kind("one", vec![template(numbered(1))]))
        .kind(kind("plain", vec![]))
        .slice(slice("pool", devices(&["shared"]), Reach::Everywhere))
        .claim(claim("a", vec![one("gpu")]))
        .claim(claim("b", vec![some("gpu", 2)]));
    check(
        &fixture,
        &["p=a", "q=b"],
        expect![[r#"
            p -> #0 one,plain topology.kubernetes.io/zone In [z1 z2] gpu.example.com
            q -> no instance type has the devices left for request "r0" of resource claim default/b
            a  one: shared | plain: shared
        "#]],
    );
}

/// When types are dropped, what was promised to them is free again.
#[test]
fn a_dropped_type_frees_its_devices() {
    let fixture = Fixture::new()
        .kind(kind("plain", vec![]))
        .kind(kind("other", vec![]))
        .slice(slice("far", devices(&["gpu-0"]), Reach::Nodes(zone("z2"))))
        .gpu_claims(&["a", "b"]);
    let mut run = Devices::new(&fixture.snapshot, []);
    let kinds: Vec<&InstanceType> = fixture.kinds.iter().collect();
    let requirements = model::Requirements::new();
    let host = |id, kinds| HostView::Claim {
        id,
        kinds,
        requirements: &requirements,
    };
    let claims = |run: &Devices<'_>, name: &str| {
        let mut pod = model::samples::pod(name);
        std::sync::Arc::make_mut(&mut pod.shape).resource_claims = vec![model::pod::PodClaim {
            name: name.to_owned(),
            source: model::pod::PodClaimSource::Claim(name.to_owned()),
        }];
        run.claims_of(&pod).unwrap()
    };
    let first = claims(&run, "a");
    let allocation = run.try_allocate(&first, host(0, &kinds)).unwrap();
    assert_eq!(allocation.kinds, [0, 1]);
    // The second type was dropped by the time the pod was placed.
    run.commit(host(0, &kinds[..1]), allocation);
    let second = claims(&run, "b");
    assert!(run.try_allocate(&second, host(1, &kinds)).is_err(), "another host");
    assert_eq!(
        run.try_allocate(&second, host(0, &kinds)).unwrap().kinds,
        [1],
        "another type of the same host"
    );
    assert_eq!(run.drivers_of(0).len(), 1);

    run.keep_kinds(0, &[]);
    assert!(run.drivers_of(0).is_empty());
    assert!(run.try_allocate(&second, host(1, &kinds)).is_ok());
}

/// Types that need different zones cannot be had by one node claim: the first decides.
#[test]
fn what_one_type_needs_binds_the_types_after_it() {
    let fixture = Fixture::new()
        .kind(kind("one", vec![template(devices(&["own"]))]))
        .kind(kind("plain", vec![]))
        .slice(slice("near", devices(&["gpu-0"]), Reach::Nodes(zone("z1"))))
        .slice(slice("far", devices(&["gpu-1"]), Reach::Nodes(zone("z2"))))
        .claim(claim("a", vec![some("gpu", 2)]));
    check(
        &fixture,
        &["p=a"],
        expect![[r#"
            p -> #0 one topology.kubernetes.io/zone In [z2] gpu.example.com
            a  one: gpu-1 own*
        "#]],
    );
}

#[test]
fn what_is_not_supported_is_refused() {
    let unknown = |name: &str| claim(name, vec![one("gpu")]);
    let fixture = Fixture::new()
        .kind(kind("one", vec![template(numbered(1))]))
        .claim(ResourceClaim {
            constraints: vec![DeviceConstraint {
                rule: ConstraintRule::Unknown("distinctAttribute"),
                ..same("x")
            }],
            ..unknown("a")
        })
        .claim(ResourceClaim {
            requests: vec![DeviceRequest {
                name: "r".into(),
                ask: Ask::Unknown,
            }],
            ..unknown("b")
        })
        .claim(claim(
            "c",
            vec![model::dra::DeviceAsk {
                count: DeviceCount::Unknown("Some".to_owned()),
                ..one("gpu")
            }],
        ))
        .claim(claim(
            "d",
            vec![model::dra::DeviceAsk {
                selectors: vec![DeviceSelector::Unknown],
                ..one("gpu")
            }],
        ));
    check(
        &fixture,
        &["p=a", "q=b", "r=c", "s=d"],
        expect![[r#"
            p -> resource claim default/a: constraint distinctAttribute is not supported
            q -> resource claim default/b: the form of request "r" is not supported
            r -> resource claim default/c: allocation mode "Some" of request "r0" is not supported
            s -> resource claim default/d: a selector of request "r0" that is not CEL is not supported
        "#]],
    );
}

/// Twenty pairs of devices, and a claim for twelve that all match: no combination does, and there are millions.
#[test]
fn a_search_that_leads_nowhere_ends_and_says_so() {
    let own: Vec<model::dra::Device> = numbered(40)
        .into_iter()
        .enumerate()
        .map(|(place, device)| {
            let device = with_attribute(device, "pair", &(place / 2).to_string());
            with_attribute(device, "unique", &place.to_string())
        })
        .collect();
    let fixture = Fixture::new()
        .kind(kind("type", vec![template(own)]))
        .claim(ResourceClaim {
            constraints: vec![DeviceConstraint {
                requests: ["r12".to_owned(), "r13".to_owned()].into(),
                ..same("gpu.example.com/unique")
            }],
            ..claim("a", (0..14).map(|_| one("gpu")).collect())
        });
    check(
        &fixture,
        &["p=a"],
        expect![[r#"
            p -> devices for resource claim default/a were not found within 50000 steps: fewer devices per claim, or narrower selectors, make the search shorter
        "#]],
    );
}

/// Devices that differ in nothing but their names are not tried one for the other.
#[test]
fn equal_devices_do_not_make_a_search_longer() {
    let fixture = Fixture::new()
        .kind(kind("type", vec![template(numbered(32))]))
        .claim(ResourceClaim {
            constraints: vec![same("gpu.example.com/missing")],
            ..claim("a", vec![some("gpu", 16)])
        })
        .claim(claim("b", vec![some("gpu", 16), where_(one("gpu"), "false")]));
    assert!(fixture.placed(&["p=a"]).contains("no instance type"));
    assert!(fixture.placed(&["p=b"]).contains("request \"r1\""));
}

#[test]
fn a_pod_with_the_most_devices_is_placed_on_a_small_stack() {
    let mut fixture = Fixture::new().slice(slice("pool", numbered(300), Reach::Everywhere));
    fixture = fixture.kind(kind("plain", vec![]));
    for number in 0..9 {
        fixture = fixture.claim(claim(&format!("c{number}"), vec![some("gpu", 32)]));
    }
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    let placed = thread.spawn(move || {
        let most: Vec<String> = (0..8).map(|number| format!("c{number}")).collect();
        assert!(
            fixture
                .placed(&[&format!("p={}", most.join(","))])
                .starts_with("p -> #0")
        );
        let too_many = fixture.placed(&[&format!("p={},c8", most.join(","))]);
        assert!(too_many.contains("ask for 288 devices together"), "{too_many}");
    });
    placed.unwrap().join().unwrap();
}
