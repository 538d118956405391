//! Claims of pods: found, missing, shared, held.

use expect_test::expect;
use model::{
    dra::{ClaimAllocation, Consumer, DeviceId, Reach, ResourceClaim},
    pod::{PodClaim, PodClaimSource},
    samples,
};

use super::{check, fixture::*};
use crate::dra::Devices;

fn gpus(count: usize) -> Vec<model::dra::ResourceSliceTemplate> {
    let names: Vec<String> = (0..count).map(|number| format!("gpu-{number}")).collect();
    vec![template(devices(&names.iter().map(String::as_str).collect::<Vec<_>>()))]
}

/// SC15.23.2
#[test]
fn a_claim_chooses_the_types_that_have_its_device() {
    let fixture = Fixture::new()
        .kind(kind("plain", vec![]))
        .kind(kind("one", gpus(1)))
        .kind(kind("two", gpus(2)))
        .gpu_claims(&["a"]);
    check(
        &fixture,
        &["p=a", "q"],
        expect![[r#"
            p -> #0 one,two topology.kubernetes.io/zone In [z1 z2] gpu.example.com
            q -> #0 one,two topology.kubernetes.io/zone In [z1 z2] gpu.example.com
            a  one: gpu-0* | two: gpu-0*
        "#]],
    );
}

/// SC15.23.2: a claim made from a template is found by the name in the pod's status; one that was not needed is skipped.
#[test]
fn a_claim_from_a_template_is_found_by_the_name_it_was_given() {
    let fixture = Fixture::new().kind(kind("one", gpus(1))).gpu_claims(&["web-gpu-x1"]);
    let mut pod = samples::pod("web");
    std::sync::Arc::make_mut(&mut pod.shape).resource_claims = vec![PodClaim {
        name: "gpu".to_owned(),
        source: PodClaimSource::Template,
    }];
    for (made, expected) in [
        (
            Some(Some("web-gpu-x1".to_owned())),
            "web -> #0 one topology.kubernetes.io/zone In [z1 z2] gpu.example.com\nweb-gpu-x1  one: gpu-0*\n",
        ),
        (Some(None), "web -> #0 one topology.kubernetes.io/zone In [z1 z2]\n"),
        (
            None,
            "web -> no resource claim has been made yet for \"gpu\" from its template: the pod is tried again once there \
             is one\n",
        ),
    ] {
        pod.generated_claims = made.map(|name| ("gpu".to_owned(), name)).into_iter().collect();
        assert_eq!(fixture.placed_pods(std::slice::from_ref(&pod)), expected);
    }
}

/// SC15.23.4
#[test]
fn what_is_missing_is_named() {
    let fixture = Fixture::new()
        .kind(kind("one", gpus(1)))
        .kind(kind("plain", vec![]))
        .claim(claim("classless", vec![one("tpu")]))
        .claim(claim("odd", vec![where_(one("gpu"), "device.driver =")]))
        .claim(claim(
            "picky",
            vec![where_(one("gpu"), "device.attributes['gpu.example.com'].fast")],
        ))
        .claim(claim("greedy", vec![some("gpu", 33)]))
        .claim(claim("pair", vec![one("gpu"), one("gpu")]))
        .claim(ResourceClaim {
            deleting: true,
            ..claim("leaving", vec![one("gpu")])
        });
    check(
        &fixture,
        &[
            "p=none",
            "q=classless",
            "r=odd",
            "s=picky",
            "t=greedy",
            "u=pair",
            "v=leaving",
        ],
        expect![[r#"
            p -> resource claim default/none does not exist: the pod is tried again once it does
            q -> resource claim default/classless, request "r0": device class "tpu" does not exist, create it
            r -> resource claim default/odd, request "r0": selector "device.driver =" cannot be used: '=' at byte 14 means nothing
            s -> no instance type has the devices left for request "r0" of resource claim default/picky
            t -> resource claim default/greedy asks for 33 devices; a claim can have at most 32, ask for fewer
            u -> no instance type has the devices left for request "r1" of resource claim default/pair
            v -> resource claim default/leaving is being deleted: the pod is tried again once there is a new one
        "#]],
    );
}

/// SC15.23.4: once the claim is there, the pod is placed.
#[test]
fn a_claim_that_comes_late_is_served_in_the_next_solve() {
    let fixture = Fixture::new().kind(kind("one", gpus(1)));
    assert!(fixture.placed(&["p=late"]).contains("does not exist"));
    assert!(
        fixture
            .gpu_claims(&["late"])
            .placed(&["p=late"])
            .contains("late  one: gpu-0*")
    );
}

/// SC15.23.4: a device that the cluster has given away is not given again, and a claim that has one keeps it.
#[test]
fn what_is_allocated_stays_allocated() {
    let device = DeviceId::new(GPU, "pool", "gpu-0");
    let fixture = Fixture::new()
        .kind(kind("plain", vec![]))
        .slice(slice("pool", devices(&["gpu-0", "gpu-1"]), Reach::Everywhere))
        .claim(holding(claim("held", vec![one("gpu")]), &device, None, &["elsewhere"]))
        .gpu_claims(&["a", "b"]);
    check(
        &fixture,
        &["p=a", "q=held", "r=b"],
        expect![[r#"
            p -> #0 plain topology.kubernetes.io/zone In [z1 z2] gpu.example.com
            q -> #0 plain topology.kubernetes.io/zone In [z1 z2] gpu.example.com
            r -> no instance type has the devices left for request "r0" of resource claim default/b
            a  plain: gpu-1
        "#]],
    );
}

/// SC15.23.4: the zones of two allocated claims conflict.
#[test]
fn claims_that_are_allocated_far_apart_fit_no_node() {
    let allocated = |name: &str, place: &str| ResourceClaim {
        allocation: Some(ClaimAllocation {
            devices: Vec::new(),
            nodes: Some(zone(place)),
        }),
        ..claim(name, vec![one("gpu")])
    };
    let fixture = Fixture::new()
        .kind(kind("plain", vec![]))
        .claim(allocated("a", "z1"))
        .claim(allocated("b", "z2"));
    check(
        &fixture,
        &["p=a", "q=b", "r=a,b"],
        expect![[r#"
            p -> #0 plain topology.kubernetes.io/zone In [z1]
            q -> #1 plain topology.kubernetes.io/zone In [z2]
            r -> the devices of resource claim default/b cannot be reached from this node
        "#]],
    );
}

/// SC15.23.6
#[test]
fn a_claim_of_several_pods_is_served_once() {
    let shared = Fixture::new()
        .kind(kind("plain", vec![]))
        .slice(slice("pool", devices(&["gpu-0", "gpu-1"]), Reach::Everywhere))
        .gpu_claims(&["shared"]);
    check(
        &shared,
        &["p=shared", "q=shared"],
        expect![[r#"
            p -> #0 plain topology.kubernetes.io/zone In [z1 z2] gpu.example.com
            q -> #0 plain topology.kubernetes.io/zone In [z1 z2] gpu.example.com
            shared  plain: gpu-0
        "#]],
    );
    let own = Fixture::new()
        .node("n1", "one", true)
        .kind(kind("one", gpus(1)))
        .gpu_claims(&["shared", "other"]);
    check(
        &own,
        &["p=shared", "q=other", "r=shared", "s=shared,other"],
        expect![[r#"
            p -> #0 one topology.kubernetes.io/zone In [z1 z2] gpu.example.com
            q -> #1 one topology.kubernetes.io/zone In [z1 z2] gpu.example.com
            r -> #0 one topology.kubernetes.io/zone In [z1 z2] gpu.example.com
            s -> resource claim default/shared has devices of another node that is planned: its pods have to go there
            other  one: gpu-0*
            shared  one: gpu-0*
        "#]],
    );
}

/// SC15.23.6
#[test]
fn a_device_is_free_when_all_who_use_it_move() {
    let device = DeviceId::new(GPU, "pool", "gpu-0");
    let fixture = |users: &[&str]| {
        Fixture::new()
            .kind(kind("plain", vec![]))
            .slice(slice("pool", devices(&["gpu-0"]), Reach::Everywhere))
            .claim(holding(claim("old", vec![one("gpu")]), &device, None, users))
            .gpu_claims(&["new"])
    };
    let free = "new  plain: gpu-0\n";
    assert!(fixture(&["mover"]).placed(&["p=new", "mover@gone"]).ends_with(free));
    for users in [&["mover", "stayer"][..], &["stayer"], &[]] {
        assert!(
            !fixture(users).placed(&["p=new", "mover@gone"]).ends_with(free),
            "{users:?}"
        );
    }
    let mut kept = fixture(&["mover"]);
    let mut claim = (*kept.snapshot.resource_claims[&model::PodKey::new("default", "old")]).clone();
    claim.reserved_for.push(Consumer::Other("job".to_owned()));
    kept = kept.claim(claim);
    assert!(!kept.placed(&["p=new", "mover@gone"]).ends_with(free));
}

/// SC15.23.6: the claim of pods that move is given devices anew, once for all of them.
#[test]
fn the_claim_of_pods_that_move_is_served_anew_and_once() {
    let device = DeviceId::new(GPU, "lost", "gpu-9");
    let fixture = Fixture::new().kind(kind("one", gpus(1))).claim(holding(
        claim("shared", vec![one("gpu")]),
        &device,
        None,
        &["p", "q"],
    ));
    check(
        &fixture,
        &["p=shared@gone", "q=shared@gone"],
        expect![[r#"
            p -> #0 one topology.kubernetes.io/zone In [z1 z2] gpu.example.com
            q -> #0 one topology.kubernetes.io/zone In [z1 z2] gpu.example.com
            shared  one: gpu-0*
        "#]],
    );
}

#[test]
fn trying_changes_nothing() {
    let fixture = Fixture::new()
        .kind(kind("plain", vec![]))
        .slice(slice("pool", devices(&["gpu-0"]), Reach::Everywhere))
        .gpu_claims(&["a"]);
    let devices = Devices::new(&fixture.snapshot, []);
    let mut pod = samples::pod("p");
    std::sync::Arc::make_mut(&mut pod.shape).resource_claims = vec![PodClaim {
        name: "a".to_owned(),
        source: PodClaimSource::Claim("a".to_owned()),
    }];
    let claims = devices.claims_of(&pod).unwrap();
    let requirements = model::Requirements::new();
    let kinds: Vec<&model::InstanceType> = fixture.kinds.iter().collect();
    let mut fork = devices.clone();
    for id in 0..2 {
        let host = crate::dra::HostView::Claim {
            id,
            kinds: &kinds,
            requirements: &requirements,
        };
        let allocation = devices.try_allocate(&claims, host).unwrap();
        if id == 1 {
            fork.commit(host, allocation);
        }
    }
    assert!(devices.results().is_empty());
    assert_eq!(fork.results().len(), 1);
}
