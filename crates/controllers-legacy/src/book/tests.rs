use serde_json::json;

use super::*;

const EC2: NodeClassKind = NodeClassKind {
    group: "karpenter.k8s.aws",
    version: "v1",
    kind: "EC2NodeClass",
    plural: "ec2nodeclasses",
};

const SIMULATED: NodeClassKind = NodeClassKind {
    group: "karpenter.kwok.sh",
    version: "v1alpha1",
    kind: "KWOKNodeClass",
    plural: "kwoknodeclasses",
};

fn document(source: Source, spec: Value) -> Document {
    let object = json!({
        "apiVersion": source.api_version(), "kind": source.kind(), "metadata": {"name": source.name()}, "spec": spec,
    });
    Document {
        source,
        meta: Default::default(),
        object,
    }
}

fn provisioner(name: &str, spec: Value) -> Document {
    document(Source::Provisioner(name.to_owned()), spec)
}

fn book_of(documents: &[Document], settings: Option<&Value>, class: &NodeClassKind) -> Book {
    let place = Place {
        cluster_name: Some("demo".to_owned()),
    };
    book(&Question {
        documents,
        settings,
        machines: &[],
        place: &place,
        class,
    })
}

fn objects<'a>(book: &'a Book, source: &Source) -> &'a [Value] {
    match book.outcome(source) {
        Some(Outcome::Objects(objects)) => objects,
        other => panic!("{source} came to {other:?}"),
    }
}

#[test]
fn one_source_that_is_wrong_keeps_no_other_from_being_converted() {
    let good = provisioner("good", json!({"provider": {"instanceProfile": "nodes"}}));
    let bad = provisioner("bad", json!({"provider": {"instanceProfile": "nodes"}, "weight": 1000}));
    let unreadable = provisioner("unreadable", json!({"ttlSecondsAfterEmpty": "soon"}));
    let book = book_of(&[bad.clone(), good.clone(), unreadable.clone()], None, &EC2);
    let kinds: Vec<_> = objects(&book, &good.source)
        .iter()
        .map(|object| object["kind"].clone())
        .collect();
    assert_eq!(kinds, ["NodePool", "EC2NodeClass"]);
    let Some(Outcome::Refused(why)) = book.outcome(&bad.source) else {
        panic!("the weight is out of bounds");
    };
    assert_eq!(why, "spec.weight: is not between 1 and 100");
    assert!(matches!(book.outcome(&unreadable.source), Some(Outcome::Refused(_))));
}

/// Upstream's launches failed when neither the object nor the settings named a profile.
#[test]
fn a_class_without_an_identity_is_refused_unless_the_settings_have_one() {
    let plain = provisioner("default", json!({"provider": {}}));
    let book = book_of(std::slice::from_ref(&plain), None, &EC2);
    assert!(matches!(book.outcome(&plain.source), Some(Outcome::Refused(_))));
    let settings = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "karpenter-global-settings"},
        "data": {"aws.defaultInstanceProfile": "nodes", "aws.tags": "{\"team\": \"a\"}"},
    });
    let book = book_of(std::slice::from_ref(&plain), Some(&settings), &EC2);
    let class = &objects(&book, &plain.source)[1];
    assert_eq!(class["spec"]["instanceProfile"], "nodes");
    assert_eq!(class["spec"]["tags"], json!({"team": "a"}));
}

/// What EC2's part of an object says means nothing to another cloud, whose classes have fields of their own.
#[test]
fn another_cloud_gets_classes_of_its_own_kind_and_no_defaults_of_ec2() {
    let plain = provisioner("default", json!({"provider": {"instanceProfile": "nodes"}}));
    let book = book_of(std::slice::from_ref(&plain), None, &SIMULATED);
    let [pool, class] = objects(&book, &plain.source) else {
        panic!("a pool and a class");
    };
    let spec = &pool["spec"]["template"]["spec"];
    assert_eq!(
        spec["nodeClassRef"],
        json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"})
    );
    let keys: Vec<_> = spec["requirements"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| one["key"].clone())
        .collect();
    assert_eq!(
        keys,
        ["kubernetes.io/os", "kubernetes.io/arch", "karpenter.sh/capacity-type"]
    );
    assert_eq!(
        *class,
        json!({"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}})
    );
}

/// LE18.13, in a cluster: the class of the template serves the most, and the rest get a copy.
#[test]
fn provisioners_that_differ_in_kubelet_settings_get_classes_of_their_own() {
    let template = document(
        Source::NodeTemplate("shared".to_owned()),
        json!({"instanceProfile": "nodes", "subnetSelector": {"a": "b"}, "securityGroupSelector": {"a": "b"}}),
    );
    let using = |name: &str, pods: u32| {
        provisioner(
            name,
            json!({"providerRef": {"name": "shared"}, "kubeletConfiguration": {"maxPods": pods}}),
        )
    };
    let (one, other) = (using("one", 10), using("other", 20));
    let book = book_of(&[template.clone(), one.clone(), other.clone()], None, &EC2);
    let classes = objects(&book, &template.source);
    assert_eq!(classes.len(), 2);
    let reference = |document: &Document| {
        let pool = &objects(&book, &document.source)[0];
        pool["spec"]["template"]["spec"]["nodeClassRef"]["name"].clone()
    };
    assert_eq!(reference(&one), "shared");
    assert_eq!(reference(&other), classes[1]["metadata"]["name"]);
}
