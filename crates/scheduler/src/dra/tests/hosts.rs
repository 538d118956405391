//! Machines, planned nodes, and what is seen from them.

use std::sync::Arc;

use expect_test::expect;
use model::{
    NodeKey, StateNode,
    dra::{DeviceId, NodeTerms, Reach, ResourceSlice},
    vocabulary,
};

use super::{check, fixture::*};

fn own(node: &str, slice: ResourceSlice) -> ResourceSlice {
    ResourceSlice {
        owner_node: Some(node.into()),
        ..slice
    }
}

fn on(node: &str, names: &[&str]) -> ResourceSlice {
    own(node, slice(node, devices(names), Reach::Node(node.into())))
}

/// SC15.23.5
#[test]
fn a_free_device_of_a_machine_comes_before_a_new_node() {
    let fixture = Fixture::new()
        .kind(kind("one", vec![template(devices(&["gpu-0"]))]))
        .node("n1", "one", true)
        .node("n2", "one", true)
        .slice(on("n2", &["gpu-0"]))
        .gpu_claims(&["a", "b"]);
    check(
        &fixture,
        &["p=a", "q=b"],
        expect![[r#"
            p -> n2
            q -> #0 one topology.kubernetes.io/zone In [z1 z2] gpu.example.com
            a  one: gpu-0
            b  one: gpu-0*
        "#]],
    );
}

/// SC15.23.4: a device of a machine that the cluster has given away is not given again.
#[test]
fn an_allocated_device_of_a_machine_is_left_alone() {
    let device = DeviceId::new(GPU, "n1", "gpu-0");
    let fixture = Fixture::new()
        .kind(kind("one", vec![template(devices(&["gpu-0"]))]))
        .node("n1", "one", true)
        .slice(on("n1", &["gpu-0"]))
        .claim(holding(claim("old", vec![one("gpu")]), &device, None, &["x"]))
        .gpu_claims(&["a"]);
    check(
        &fixture,
        &["p=a"],
        expect![[r#"
            p -> #0 one topology.kubernetes.io/zone In [z1 z2] gpu.example.com
            a  one: gpu-0*
        "#]],
    );
}

/// SC15.23.5
#[test]
fn the_zone_of_a_published_device_becomes_the_nodes() {
    let fixture = Fixture::new()
        .class("nic", "nic.example.com")
        .kind(kind("plain", vec![]))
        .slice(slice("far", devices(&["gpu-0"]), Reach::Nodes(zone("z2"))))
        .slice(ResourceSlice {
            driver: "nic.example.com".into(),
            ..slice("nics", devices(&["nic-0"]), Reach::Nodes(zone("z2")))
        })
        .gpu_claims(&["a"])
        .claim(claim("b", vec![one("nic")]));
    check(
        &fixture,
        &["p=a,b"],
        expect![[r#"
            p -> #0 plain topology.kubernetes.io/zone In [z2] gpu.example.com,nic.example.com
            a  plain: gpu-0
            b  plain: nic-0
        "#]],
    );
    let apart = fixture.slice(ResourceSlice {
        driver: "nic.example.com".into(),
        ..slice("nics", devices(&["nic-0"]), Reach::Nodes(zone("z1")))
    });
    check(
        &apart,
        &["p=a,b", "q=a"],
        expect![[r#"
            p -> no instance type has the devices left for request "r0" of resource claim default/b
            q -> #0 plain topology.kubernetes.io/zone In [z2] gpu.example.com
            a  plain: gpu-0
        "#]],
    );
}

/// SC15.23.5: several terms are alternatives.
#[test]
fn a_device_that_two_zones_reach_is_had_from_either() {
    let mut terms = zone("z9");
    terms.0.extend(zone("z2").0);
    let fixture = Fixture::new()
        .kind(kind("plain", vec![]))
        .slice(slice("pool", devices(&["gpu-0"]), Reach::Nodes(terms)))
        .gpu_claims(&["a"]);
    check(
        &fixture,
        &["p=a"],
        expect![[r#"
            p -> #0 plain topology.kubernetes.io/zone In [z2] gpu.example.com
            a  plain: gpu-0
        "#]],
    );
}

#[test]
fn a_device_of_a_named_node_or_of_no_node_is_not_for_others() {
    let named = NodeTerms(vec![model::dra::NodeSelection {
        names: Some(["n2".into()].into()),
        ..Default::default()
    }]);
    for reach in [Reach::Node("n2".into()), Reach::Nodes(named), Reach::Nowhere] {
        let nowhere = reach == Reach::Nowhere;
        let fixture = Fixture::new()
            .kind(kind("plain", vec![]))
            .node("n1", "plain", true)
            .slice(slice("pool", devices(&["gpu-0"]), reach))
            .gpu_claims(&["a"]);
        assert!(fixture.placed(&["p=a"]).contains("no instance type"));
        let fixture = fixture.node("n2", "plain", true);
        assert_eq!(fixture.placed(&["p=a"]).starts_with("p -> n2"), !nowhere);
    }
}

/// SC15.23.7
#[test]
fn templates_stand_for_the_devices_of_a_machine_until_it_is_initialized() {
    let fixture = |initialized| {
        Fixture::new()
            .kind(kind("two", vec![template(devices(&["gpu-0", "gpu-1"]))]))
            .node("n1", "two", initialized)
            .slice(on("n1", &["gpu-0", "gpu-1"]))
            .gpu_claims(&["a", "b", "c"])
    };
    check(
        &fixture(false),
        &["p=a", "q=b", "r=c"],
        expect![[r#"
            p -> n1
            q -> n1
            r -> #0 two topology.kubernetes.io/zone In [z1 z2] gpu.example.com
            a  two: gpu-0*
            b  two: gpu-1*
            c  two: gpu-0*
        "#]],
    );
    check(
        &fixture(true),
        &["p=a", "q=b", "r=c"],
        expect![[r#"
            p -> n1
            q -> n1
            r -> #0 two topology.kubernetes.io/zone In [z1 z2] gpu.example.com
            a  two: gpu-0
            b  two: gpu-1
            c  two: gpu-0*
        "#]],
    );
}

/// SC15.23.7
#[test]
fn slices_of_unknown_and_leaving_nodes_do_not_count() {
    let everywhere = |owner: &str| own(owner, slice("pool", devices(&["gpu-0"]), Reach::Everywhere));
    let unknown = Fixture::new()
        .kind(kind("plain", vec![]))
        .slice(everywhere("n1"))
        .gpu_claims(&["a"]);
    assert!(unknown.placed(&["p=a"]).contains("no instance type"));
    let mut known = unknown.node("n1", "plain", true);
    assert!(known.placed(&["p=a"]).starts_with("p -> n1"));
    let machine = known.snapshot.nodes[&NodeKey::Claim("n1".into())].clone();
    known.snapshot.put_node(Arc::new(StateNode {
        marked_for_deletion: true,
        ..(*machine).clone()
    }));
    assert!(known.placed(&["p=a"]).contains("no instance type"));
}

/// A machine that nobody's catalog knows is asked about its published devices all the same.
#[test]
fn a_machine_of_an_unknown_type_has_what_it_has_published() {
    let fixture = Fixture::new()
        .node("n1", "homemade", true)
        .slice(on("n1", &["gpu-0"]))
        .gpu_claims(&["a", "b"]);
    check(
        &fixture,
        &["p=a", "q=b"],
        expect![[r#"
            p -> n1
            q -> no instance type has the devices left for request "r0" of resource claim default/b
            a  homemade: gpu-0
        "#]],
    );
}

/// The labels of an initialized machine are final; others may still get well-known ones.
#[test]
fn a_label_that_a_machine_lacks_is_not_made_up() {
    let mut fixture = Fixture::new()
        .kind(kind("plain", vec![]))
        .node("n1", "plain", true)
        .slice(slice("pool", devices(&["gpu-0"]), Reach::Nodes(zone("z1"))))
        .gpu_claims(&["a"]);
    assert!(fixture.placed(&["p=a"]).starts_with("p -> n1"));
    let machine = fixture.snapshot.nodes[&NodeKey::Claim("n1".into())].clone();
    let mut zoneless = (*machine).clone();
    if let Some(node) = &mut zoneless.node {
        node.labels.remove(vocabulary::ZONE);
    }
    fixture.snapshot.put_node(Arc::new(zoneless));
    assert!(fixture.placed(&["p=a"]).starts_with("p -> #0"));
}

/// A claim whose device only one machine reaches binds the pods that share it to that machine.
#[test]
fn pods_that_share_a_device_of_a_machine_go_there() {
    let fixture = Fixture::new()
        .kind(kind("plain", vec![]))
        .node("n1", "plain", true)
        .node("n2", "plain", true)
        .slice(on("n2", &["gpu-0"]))
        .gpu_claims(&["a"]);
    check(
        &fixture,
        &["p=a", "q=a"],
        expect![[r#"
            p -> n2
            q -> n2
            a  plain: gpu-0
        "#]],
    );
}
