//! Which objects count, and in what form they can come.

use std::{io::Write as _, process::Stdio};

use crate::{
    Input,
    cluster::{CLASS, POOL, all, node, pod, pod_with},
};

/// The pods that were looked at, whatever became of them.
fn looked_at(input: Input) -> Vec<String> {
    let plan = input.plan();
    let placed = ["newNodes", "existingNodes"]
        .iter()
        .flat_map(|list| plan[list].as_array().expect("a list").iter())
        .flat_map(|node| node["pods"].as_array().expect("pods"));
    let refused = plan["unschedulable"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| &one["pod"]);
    let mut pods: Vec<String> = placed
        .chain(refused)
        .map(|pod| pod.as_str().expect("a name").to_owned())
        .collect();
    pods.sort();
    pods
}

fn conditioned(name: &str, status: &str, reason: &str) -> String {
    let condition = format!("{{type: PodScheduled, status: '{status}', reason: {reason}}}");
    pod(name, "1") + &format!("status: {{conditions: [{condition}]}}\n")
}

#[test]
fn pods_that_somebody_else_sees_to_are_not_in_the_round() {
    let owned = |name: &str, api: &str, kind: &str| {
        let owner = format!("ownerReferences: [{{apiVersion: {api}, kind: {kind}, name: o, uid: o}}]");
        pod(name, "1").replace("labels:", &format!("{owner}, labels:"))
    };
    let objects = all(&[
        CLASS,
        POOL,
        &node("n1"),
        &pod("plain", "1"),
        &conditioned("judged", "False", "Unschedulable"),
        &conditioned("gated", "False", "SchedulingGated"),
        &pod_with("bound", "1", "  nodeName: n1"),
        &(pod("done", "1") + "status: {phase: Succeeded}\n"),
        &(pod("preempting", "1") + "status: {nominatedNodeName: n1}\n"),
        &owned("daemon", "apps/v1", "DaemonSet"),
        &owned("mirror", "v1", "Node"),
        &owned("replica", "apps/v1", "ReplicaSet"),
    ]);
    assert_eq!(
        looked_at(Input::new(&objects)),
        ["default/judged", "default/plain", "default/replica"]
    );
}

#[test]
fn a_selector_narrows_the_round() {
    let objects = all(&[CLASS, POOL, &pod("web-1", "1"), &pod("db-1", "1")]);
    assert_eq!(
        looked_at(Input::new(&objects).with(&["--pods", "app in (web)"])),
        ["default/web-1"]
    );
    assert_eq!(
        looked_at(Input::new(&objects).with(&["-l", "app!=web"])),
        ["default/db-1"]
    );
}

#[test]
fn pods_of_nodes_that_go_are_in_the_round() {
    let leaving = node("old").replace("labels:", "deletionTimestamp: '2026-01-01T00:00:00Z', labels:");
    let objects = all(&[
        CLASS,
        POOL,
        &leaving,
        &node("gone"),
        &pod_with("moving", "1", "  nodeName: old"),
        &pod_with("kept", "1", "  nodeName: old")
            .replace("labels:", "annotations: {karpenter.sh/do-not-disrupt: 'true'}, labels:"),
        &pod_with("simulated", "1", "  nodeName: gone"),
        &pod_with("guarded", "1", "  nodeName: gone"),
        "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: all, namespace: default}\n\
         spec: {maxUnavailable: 0, selector: {matchLabels: {app: guarded}}}\n",
    ]);
    assert_eq!(looked_at(Input::new(&objects)), ["default/moving"]);
    let without = Input::new(&objects).with(&["--without", "gone", "--enforce-consolidate-after=true"]);
    assert_eq!(looked_at(without), ["default/moving", "default/simulated"]);
    assert_eq!(
        looked_at(Input::new(&objects).with(&["--without="])),
        ["default/moving"]
    );
}

#[test]
fn a_pod_that_matches_fields_is_refused_with_the_reason() {
    let spec = "  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [\
                {matchFields: [{key: metadata.name, operator: In, values: [n1]}]}]}}}";
    let plan = Input::new(&all(&[CLASS, POOL, &pod_with("pinned", "1", spec)])).plan();
    let reason = plan["unschedulable"][0]["reason"].as_str().expect("a reason");
    assert!(reason.ends_with("matchFields: only labels can be matched"), "{reason}");
}

#[test]
fn a_pool_counts_as_ready_unless_it_or_its_class_says_otherwise() {
    let types = |class: &str, pool: &str| {
        let input = Input::new(&all(&[class, pool, &pod("web", "1")]));
        let notes = input.notes();
        (input.plan()["newNodes"].as_array().expect("a list").len(), notes)
    };
    let condition = |status: &str| {
        format!(
            "status: {{conditions: [{{type: Ready, status: '{status}', reason: R, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}}]}}\n"
        )
    };
    assert_eq!(types(CLASS, POOL), (1, String::new()));
    let absent = "note: node class KWOKNodeClass default is not among the objects and counts as ready\n";
    assert_eq!(types("", POOL), (1, absent.to_owned()));
    let not_ready = "note: node pool general is not ready: its node class is not\n";
    assert_eq!(
        types(&(CLASS.to_owned() + &condition("False")), POOL),
        (0, not_ready.to_owned())
    );
    assert_eq!(
        types(CLASS, &(POOL.to_owned() + &condition("False"))),
        (0, String::new())
    );
    assert_eq!(
        types(CLASS, &(POOL.to_owned() + &condition("True"))),
        (1, String::new())
    );
    let restricted = POOL.replace("key: kubernetes.io/os", "key: kubernetes.io/hostname");
    let (launched, notes) = types(CLASS, &restricted);
    assert_eq!(launched, 0);
    assert!(
        notes.starts_with("note: node pool general is not ready: spec.template.spec.requirements[0].key: "),
        "{notes}"
    );
}

#[test]
fn an_unregistered_machine_is_known_by_its_claim() {
    let claim = "
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: general-x, labels: {karpenter.sh/nodepool: general}}
spec:
  nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
  requirements: []
status:
  providerID: kwok://x
  capacity: {cpu: 4, memory: 8Gi, pods: 10}
  allocatable: {cpu: 4, memory: 8Gi, pods: 10}
";
    let plan = Input::new(&all(&[CLASS, POOL, claim, &pod("web", "1")])).plan();
    assert_eq!(plan["existingNodes"][0]["name"], "general-x");
    let joined = "
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {karpenter.sh/nodepool: general, karpenter.sh/registered: 'true', karpenter.kwok.sh/kwoknodeclass: default}}
spec: {providerID: kwok://x}
status: {capacity: {cpu: 4, memory: 8Gi, pods: 10}, allocatable: {cpu: 4, memory: 8Gi, pods: 10}}
";
    let plan = Input::new(&all(&[CLASS, POOL, claim, joined, &pod("web", "1")])).plan();
    assert_eq!(plan["existingNodes"][0]["name"], "n1");
}

#[test]
fn objects_come_as_files_folders_lists_json_and_standard_input() {
    let objects = all(&[CLASS, POOL, &pod("a", "1")]);
    let json = r#"{"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b", "namespace": "shop"}, "spec": {"containers": []}}]}"#;
    let input = Input::new(&objects);
    input.write("more.json", json);
    input.write("notes.txt", "no object");
    // The folder has the catalog in it, too, which is no object.
    input.write("types.yaml", "");
    std::fs::rename(
        input.folder.path().join("types.json"),
        input.folder.path().join("types.txt"),
    )
    .expect("a file");
    let input = input.with(&["-f", ".", "--instance-types", "types.txt"]);
    assert_eq!(looked_at(input), ["default/a", "shop/b"]);

    let input = Input::new(&objects);
    input.write("more.json", json);
    assert_eq!(
        looked_at(input.with(&["-f", "objects.yaml", "-f", "more.json", "-n", "other"])),
        ["other/a", "shop/b"]
    );

    let input = Input::new("");
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_karpenter"))
        .args(["schedule", "-f", "-", "--instance-types", "types.json", "-o", "json"])
        .current_dir(input.folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program runs");
    child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(objects.as_bytes())
        .expect("the program reads");
    let output = child.wait_with_output().expect("the program ends");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.contains("default/a"), "{text}");
}

#[test]
fn unknown_kinds_are_skipped_and_counted() {
    let secret = "{apiVersion: v1, kind: Secret, metadata: {name: s}}";
    let owner = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}}";
    let notes = Input::new(&all(&[CLASS, POOL, secret, secret, owner])).notes();
    assert_eq!(
        notes,
        "note: skipped objects of kinds that do not matter here: 2 Secret\n"
    );
}

#[test]
fn pools_can_see_catalogs_of_their_own() {
    let other = POOL.replace("name: general", "name: other");
    let input = Input::new(&all(&[CLASS, POOL, &other, &pod("web", "1")]));
    let types = std::fs::read_to_string(input.folder.path().join("types.json")).expect("the catalog");
    input.write("types.json", &format!(r#"{{"byNodePool": {{"other": {types}}}}}"#));
    let plan = input.plan();
    assert_eq!(plan["newNodes"][0]["nodePool"], "other");
}

/// Pods of a service, and pods of a controller, are spread where the setting says so.
#[test]
fn default_spreads_are_deduced_from_the_objects_in_the_files() {
    let owner = "ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: api, uid: o, controller: true}]";
    let owned = |name: &str| pod(name, "100m").replace("labels:", &format!("{owner}, labels:"));
    let objects = all(&[
        CLASS,
        POOL,
        "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}}",
        "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: api}\nspec: {selector: {matchLabels: {app: api}}}",
        &pod("web-1", "100m"),
        &pod("web-2", "100m"),
        &owned("api-1"),
        &owned("api-2"),
    ]);
    let nodes = |input: Input| input.plan()["newNodes"].as_array().map(Vec::len);
    assert_eq!(nodes(Input::new(&objects)), Some(1));
    let spread = "podTopologySpread: {defaultConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, \
                  whenUnsatisfiable: DoNotSchedule}]}";
    assert_eq!(
        nodes(Input::new(&objects).with(&["--scheduler-config", spread])),
        Some(2)
    );
    let output = Input::new(&objects).with(&["--scheduler-config", "profiles: []"]).run();
    assert_eq!(output.status.code(), Some(2));
}
