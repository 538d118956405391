//! What is printed.

use expect_test::expect;

use crate::{
    Input,
    cluster::{CLASS, POOL, all, node, pod, pod_with},
};

/// Three pods for a new node, one for a node that is there, two that nobody can place.
fn situation() -> String {
    let picky = |name: &str| pod_with(name, "1", "  nodeSelector: {kubernetes.io/arch: arm64}");
    let only_here = pod_with("here", "1", "  nodeSelector: {kubernetes.io/hostname: n1}");
    all(&[
        CLASS,
        POOL,
        &node("n1"),
        &only_here,
        &pod("small", "1"),
        &pod("web-1", "3"),
        &pod("web-2", "3"),
        &picky("arm-1"),
        &picky("arm-2"),
        &pod("huge", "100"),
    ])
}

#[test]
fn people_get_a_table() {
    expect![[r#"
        New nodes
        POOL     TYPE       ZONE  CAPACITY  PRICE/H  PODS  CPU  MEMORY
        general  m.2xlarge  a     spot       0.4000     2  76%      6%

        Existing nodes
        NODE  PODS  NAMES
        n1       1  default/small

        No place
        2 pods: default/arm-1 default/arm-2
            pool general: no instance type met the scheduling requirements or had a required offering (2 with other labels)
        1 pod: default/here
            label "kubernetes.io/hostname" is restricted: pods cannot choose nodes by it
        1 pod: default/huge
            pool general: no instance type met the scheduling requirements or had a required offering (2 too small), cpu 100 is asked for and the largest has 7900m left

        3 of 7 pods have a place: 2 on 1 new node for $0.4000 per hour, 1 on nodes that are there.
    "#]]
    .assert_eq(&Input::new(&situation()).printed());
}

#[test]
fn people_who_want_more_get_a_wide_table() {
    expect![[r#"
        New nodes
        POOL     TYPE       ZONE  CAPACITY  PRICE/H  PODS  CPU  MEMORY  ALTERNATIVES  REQUESTS                 NAMES
        general  m.2xlarge  a     spot       0.4000     2  76%      6%             0  cpu=6 memory=2Gi pods=2  default/web-1 default/web-2

        Existing nodes
        NODE  PODS  NAMES
        n1       1  default/small

        No place
        2 pods: default/arm-1 default/arm-2
            pool general: no instance type met the scheduling requirements or had a required offering (2 with other labels)
        1 pod: default/here
            label "kubernetes.io/hostname" is restricted: pods cannot choose nodes by it
        1 pod: default/huge
            pool general: no instance type met the scheduling requirements or had a required offering (2 too small), cpu 100 is asked for and the largest has 7900m left

        3 of 7 pods have a place: 2 on 1 new node for $0.4000 per hour, 1 on nodes that are there.
    "#]].assert_eq(&Input::new(&situation()).with(&["-o", "wide", "--explain"]).printed());
}

#[test]
fn programs_get_json() {
    let plan = Input::new(&situation()).plan();
    expect![[r#"
        {
          "existingNodes": [
            {
              "name": "n1",
              "pods": [
                "default/small"
              ]
            }
          ],
          "newNodes": [
            {
              "instanceTypes": [
                "m.2xlarge"
              ],
              "launch": {
                "capacityType": "spot",
                "instanceType": "m.2xlarge",
                "pricePerHour": 0.4,
                "zone": "a"
              },
              "nodePool": "general",
              "pods": [
                "default/web-1",
                "default/web-2"
              ],
              "requests": {
                "cpu": "6",
                "memory": "2Gi",
                "pods": "2"
              },
              "requirements": [
                {
                  "key": "karpenter.kwok.sh/kwoknodeclass",
                  "minValues": null,
                  "operator": "In",
                  "values": [
                    "default"
                  ]
                },
                {
                  "key": "karpenter.sh/capacity-type",
                  "minValues": null,
                  "operator": "In",
                  "values": [
                    "on-demand",
                    "spot"
                  ]
                },
                {
                  "key": "karpenter.sh/nodepool",
                  "minValues": null,
                  "operator": "In",
                  "values": [
                    "general"
                  ]
                },
                {
                  "key": "kubernetes.io/os",
                  "minValues": null,
                  "operator": "In",
                  "values": [
                    "linux"
                  ]
                }
              ]
            }
          ],
          "pendingPodsByEffectiveZone": {
            "flexible": 6
          },
          "pricePerHour": 0.4,
          "unschedulable": [
            {
              "pod": "default/arm-1",
              "reason": "pool general: no instance type met the scheduling requirements or had a required offering (2 with other labels)",
              "refusals": [
                {
                  "nodePool": "general",
                  "reason": "no instance type met the scheduling requirements or had a required offering (2 with other labels)"
                }
              ]
            },
            {
              "pod": "default/arm-2",
              "reason": "pool general: no instance type met the scheduling requirements or had a required offering (2 with other labels)",
              "refusals": [
                {
                  "nodePool": "general",
                  "reason": "no instance type met the scheduling requirements or had a required offering (2 with other labels)"
                }
              ]
            },
            {
              "pod": "default/here",
              "reason": "label \"kubernetes.io/hostname\" is restricted: pods cannot choose nodes by it",
              "refusals": []
            },
            {
              "pod": "default/huge",
              "reason": "pool general: no instance type met the scheduling requirements or had a required offering (2 too small), cpu 100 is asked for and the largest has 7900m left",
              "refusals": [
                {
                  "nodePool": "general",
                  "reason": "no instance type met the scheduling requirements or had a required offering (2 too small), cpu 100 is asked for and the largest has 7900m left"
                }
              ]
            }
          ]
        }"#]].assert_eq(&serde_json::to_string_pretty(&plan).expect("JSON"));
}

#[test]
fn yaml_says_the_same_as_json() {
    let text = Input::new(&situation()).with(&["-o", "yaml"]).printed();
    let mut yaml: serde_json::Value = serde_saphyr::from_str(&text).expect("YAML");
    yaml.as_object_mut().expect("an object").remove("solveMillis");
    assert_eq!(yaml, Input::new(&situation()).plan());
}

#[test]
fn nothing_to_do_is_said() {
    expect![[r#"
        No pod waits for a place.
    "#]]
    .assert_eq(&Input::new(&all(&[CLASS, POOL])).printed());
}

#[test]
fn a_demand_for_variety_is_told_with_the_types() {
    let pool = POOL.to_owned() + "      - {key: node.kubernetes.io/instance-type, operator: Exists, minValues: 2}\n";
    let plan = Input::new(&all(&[CLASS, &pool, &pod("web", "1")])).plan();
    let requirements = plan["newNodes"][0]["requirements"].as_array().expect("a list");
    let types = requirements
        .iter()
        .find(|one| one["key"] == "node.kubernetes.io/instance-type");
    assert_eq!(types.expect("the types are required")["minValues"], 2);
}

#[test]
fn overlays_change_prices_only_behind_their_gate() {
    let overlay = "
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: cheap}
spec:
  requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [m.2xlarge]}]
  price: '0.01'
";
    let objects = all(&[CLASS, POOL, overlay, &pod("web", "1")]);
    let launched =
        |gates: &[&str]| Input::new(&objects).with(gates).plan()["newNodes"][0]["launch"]["instanceType"].clone();
    assert_eq!(launched(&[]), "m.large");
    assert_eq!(launched(&["--feature-gates", "NodeOverlay=true"]), "m.2xlarge");

    let bad = overlay.replace("price: '0.01'", "capacity: {cpu: 1}");
    let input = Input::new(&all(&[CLASS, POOL, &bad])).with(&["--feature-gates", "NodeOverlay=true"]);
    expect![[r#"
        note: node overlay cheap is not in force: spec.capacity[cpu]: resource "cpu" is the provider's to set
    "#]]
    .assert_eq(&input.notes());
}
