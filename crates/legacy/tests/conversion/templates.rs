//! Node templates and inline providers become classes.

use legacy::{Change, Facts, Options, ROLE_PLACEHOLDER, Reason};
use serde_json::{Value, json};

use crate::fixtures::{TEMPLATE, beta, object, reasons, refused, to_v1, to_v1beta1, warns};

fn template(spec: &str) -> String {
    let spec: String = spec.lines().map(|line| format!("  {line}\n")).collect();
    format!("{TEMPLATE}{spec}")
}

#[track_caller]
fn class(spec: &str) -> Value {
    let converted = to_v1(&template(spec), &Options::default());
    object(&converted, "EC2NodeClass", "default")["spec"].clone()
}

/// LE18.6
#[test]
fn an_inline_provider_becomes_a_class_of_the_same_name() {
    let inline = "apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: inline, labels: {team: a}}
spec:
  provider:
    apiVersion: extensions.karpenter.sh/v1alpha1
    kind: AWS
    context: context-1
    subnetSelector: {Name: '*Public*'}
    securityGroupSelector: {aws-ids: sg-1}
    metadataOptions: {httpEndpoint: disabled, httpTokens: optional}
    blockDeviceMappings:
    - deviceName: /dev/xvda
      ebs: {volumeSize: 100Gi, volumeType: gp3, iops: 10000, encrypted: true, kmsKeyID: key, deleteOnTermination: true, throughput: 125, snapshotID: snap-1}
    tags: {team: a, karpenter.sh/managed-by: demo}
";
    let converted = to_v1(inline, &Options::default());
    let kinds: Vec<&str> = converted
        .objects()
        .map(|object| object["kind"].as_str().expect("a kind"))
        .collect();
    assert_eq!(kinds, ["NodePool", "EC2NodeClass"]);
    let pool = object(&converted, "NodePool", "inline");
    assert_eq!(pool["spec"]["template"]["spec"]["nodeClassRef"]["name"], "inline");
    let class = object(&converted, "EC2NodeClass", "inline");
    assert_eq!(class["metadata"], json!({"name": "inline"}));
    assert_eq!(
        class["spec"]["metadataOptions"],
        json!({"httpEndpoint": "disabled", "httpProtocolIPv6": "disabled", "httpPutResponseHopLimit": 1, "httpTokens": "optional"})
    );
    assert_eq!(class["spec"]["tags"], json!({"team": "a"}));
    assert_eq!(class["spec"]["context"], "context-1");
    assert_eq!(class["spec"]["blockDeviceMappings"][0]["ebs"]["iops"], 10000);
    assert_eq!(
        class["spec"]["subnetSelectorTerms"],
        json!([{"tags": {"Name": "*Public*"}}])
    );
    assert_eq!(class["spec"]["securityGroupSelectorTerms"], json!([{"id": "sg-1"}]));

    let old = to_v1beta1(inline);
    let class = object(&old, "EC2NodeClass", "inline");
    assert_eq!(class["apiVersion"], "karpenter.k8s.aws/v1beta1");
    assert_eq!(class["spec"]["role"], ROLE_PLACEHOLDER);
    assert_eq!(
        class["spec"]["metadataOptions"],
        json!({"httpEndpoint": "disabled", "httpTokens": "optional"})
    );
    let reference = &object(&old, "NodePool", "inline")["spec"]["template"]["spec"]["nodeClassRef"];
    assert_eq!(*reference, json!({"name": "inline"}));
}

#[test]
fn an_inline_class_gives_way_to_a_template_of_the_same_name() {
    let inline = "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: default}\nspec: {provider: {subnetSelector: {a: b}, securityGroupSelector: {a: b}}}\n---";
    let converted = to_v1(&format!("{inline}{TEMPLATE}"), &Options::default());
    object(&converted, "EC2NodeClass", "default");
    object(&converted, "EC2NodeClass", "default-provider");
    let pool = object(&converted, "NodePool", "default");
    assert_eq!(
        pool["spec"]["template"]["spec"]["nodeClassRef"]["name"],
        "default-provider"
    );
}

/// LE18.7
#[test]
fn image_selectors_multiply_out_and_ids_stand_alone_in_v1() {
    let selector = "amiFamily: Custom
amiSelector: {aws::ids: 'ami-1,ami-2', aws::owners: 'self, 123456789012', aws::name: mine, a: 'x,y,z', b: '1,2'}";
    let terms = |ids: &str| -> Vec<Value> {
        let mut terms = Vec::new();
        for owner in ["self", "123456789012"] {
            for id in ids.split(',') {
                for b in ["1", "2"] {
                    for a in ["x", "y", "z"] {
                        terms.push(json!({"owner": owner, "id": id, "name": "mine", "tags": {"a": a, "b": b}}));
                    }
                }
            }
        }
        terms
    };
    let old = to_v1beta1(&template(selector));
    let old = &object(&old, "EC2NodeClass", "default")["spec"]["amiSelectorTerms"];
    assert_eq!(old.as_array().expect("a list").len(), 24);
    assert_eq!(*old, json!(terms("ami-1,ami-2")));
    assert_eq!(
        class(selector)["amiSelectorTerms"],
        json!([{"id": "ami-1"}, {"id": "ami-2"}])
    );
}

/// LE18.8
#[test]
fn subnet_selectors_multiply_out_with_the_first_key_fastest() {
    let spec = TEMPLATE.replace(
        "{karpenter.sh/discovery: demo}\n  security",
        "{a: 'x,y', b: '1,2'}\n  security",
    );
    let converted = to_v1(&spec, &Options::default());
    assert_eq!(
        object(&converted, "EC2NodeClass", "default")["spec"]["subnetSelectorTerms"],
        json!([
            {"tags": {"a": "x", "b": "1"}},
            {"tags": {"a": "y", "b": "1"}},
            {"tags": {"a": "x", "b": "2"}},
            {"tags": {"a": "y", "b": "2"}},
        ])
    );
}

/// LE18.9
#[test]
fn without_a_family_the_images_are_those_of_al2() {
    let spec = class("detailedMonitoring: true");
    assert_eq!(spec["amiSelectorTerms"], json!([{"alias": "al2@latest"}]));
    assert_eq!(spec.get("amiFamily"), None);
    assert_eq!(spec["detailedMonitoring"], true);
    let old = to_v1beta1(TEMPLATE);
    let old = &object(&old, "EC2NodeClass", "default")["spec"];
    assert_eq!(old["amiFamily"], "AL2");
    assert_eq!(old.get("amiSelectorTerms"), None);
}

#[test]
fn families_become_aliases_or_stay_beside_their_terms() {
    for (family, alias) in [
        ("AL2", "al2@latest"),
        ("Bottlerocket", "bottlerocket@latest"),
        ("Windows2019", "windows2019@latest"),
        ("Windows2022", "windows2022@latest"),
    ] {
        let spec = class(&format!("amiFamily: {family}"));
        assert_eq!(spec["amiSelectorTerms"], json!([{"alias": alias}]), "{family}");
        assert_eq!(spec.get("amiFamily"), None, "{family}");
        let spec = class(&format!("amiFamily: {family}\namiSelector: {{aws::name: mine}}"));
        assert_eq!(spec["amiSelectorTerms"], json!([{"name": "mine"}]), "{family}");
        assert_eq!(spec["amiFamily"], family);
    }
    let spec = class("amiSelector: {aws-ids: ami-1}");
    assert_eq!(spec["amiFamily"], "AL2");
    let ubuntu = class("amiFamily: Ubuntu\namiSelector: {aws-ids: ami-1}");
    assert_eq!(ubuntu["amiFamily"], "AL2");
    assert_eq!(
        ubuntu["blockDeviceMappings"],
        json!([{"deviceName": "/dev/sda1", "rootVolume": true, "ebs": {"encrypted": true, "volumeSize": "20Gi", "volumeType": "gp3"}}])
    );
    for family in ["Ubuntu", "Custom"] {
        let told = refused(&template(&format!("amiFamily: {family}")), &Options::default());
        assert!(told[0].contains("has no images of its own"), "{told:?}");
    }
    assert!(refused(&template("amiFamily: AL2023"), &Options::default())[0].contains("is none of"));
}

/// LE18.10
#[test]
fn a_launch_template_cannot_be_converted_without_being_told_how() {
    let told = refused(&template("launchTemplate: mine"), &Options::default());
    assert_eq!(
        told,
        ["document 1, AWSNodeTemplate default: cannot convert with \"spec.launchTemplate\""]
    );
    assert_eq!(
        reasons(&template("launchTemplate: mine"), &beta()),
        [Reason::LaunchTemplate]
    );
}

#[test]
fn nodes_keep_their_identity() {
    let with = |options: &Options, yaml: &str| {
        let converted = to_v1(yaml, options);
        let spec = &object(&converted, "EC2NodeClass", "default")["spec"];
        (spec.get("role").cloned(), spec.get("instanceProfile").cloned())
    };
    let none = TEMPLATE.replace("  instanceProfile: nodes\n", "");
    assert_eq!(with(&Options::default(), TEMPLATE), (None, Some(json!("nodes"))));
    assert_eq!(with(&Options::default(), &none), (Some(json!(ROLE_PLACEHOLDER)), None));
    let profile = Options {
        default_instance_profile: Some("usual".to_owned()),
        ..Options::default()
    };
    assert_eq!(with(&profile, TEMPLATE), (None, Some(json!("nodes"))));
    assert_eq!(with(&profile, &none), (None, Some(json!("usual"))));
    let role = Options {
        node_role: Some("role".to_owned()),
        ..profile
    };
    assert_eq!(with(&role, TEMPLATE), (Some(json!("role")), None));
}

#[test]
fn the_metadata_service_stays_as_far_away_as_it_was() {
    let absent = json!({"httpEndpoint": "enabled", "httpProtocolIPv6": "disabled", "httpPutResponseHopLimit": 2, "httpTokens": "required"});
    assert_eq!(class("context: x")["metadataOptions"], absent);
    let partial = json!({"httpEndpoint": "enabled", "httpProtocolIPv6": "disabled", "httpPutResponseHopLimit": 3, "httpTokens": "optional"});
    assert_eq!(
        class("metadataOptions: {httpPutResponseHopLimit: 3}")["metadataOptions"],
        partial
    );
    let options = Options {
        v1_metadata_defaults: true,
        ..Options::default()
    };
    let converted = to_v1(TEMPLATE, &options);
    assert_eq!(
        object(&converted, "EC2NodeClass", "default")["spec"].get("metadataOptions"),
        None
    );
}

#[test]
fn words_and_bounds_of_metadata_options_are_held_to() {
    for (options, part) in [
        ("{httpEndpoint: maybe}", "neither enabled nor disabled"),
        ("{httpProtocolIPv6: maybe}", "neither enabled nor disabled"),
        ("{httpTokens: maybe}", "neither required nor optional"),
        ("{httpPutResponseHopLimit: 65}", "between 1 and 64"),
    ] {
        let told = refused(&template(&format!("metadataOptions: {options}")), &Options::default());
        assert!(told[0].contains(part), "{options}: {told:?}");
    }
}

#[test]
fn tags_are_merged_and_those_of_karpenter_leave() {
    let options = Options {
        global_tags: [("team", "all"), ("cost", "1")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
        ..Options::default()
    };
    let spec = "tags: {team: a, karpenter.sh/provisioner-name: x, kubernetes.io/cluster/demo: owned, eks:eks-cluster-name: demo}";
    let converted = to_v1(&template(spec), &options);
    let tags = &object(&converted, "EC2NodeClass", "default")["spec"]["tags"];
    assert_eq!(*tags, json!({"cost": "1", "team": "a"}));
    assert!(warns(
        &converted,
        &Change::TagRemoved {
            key: "kubernetes.io/cluster/demo".to_owned()
        }
    ));
}

#[test]
fn selectors_are_held_to_their_rules() {
    let with = |selector: &str| TEMPLATE.replacen("{karpenter.sh/discovery: demo}", selector, 1);
    assert_eq!(reasons(&with("{}"), &Options::default()), [Reason::NoSelector]);
    assert!(refused(&with("{aws-ids: sg-1}"), &Options::default())[0].contains("subnet-"));
    let converted = to_v1(&with("{team: ''}"), &Options::default());
    assert!(warns(
        &converted,
        &Change::EmptyValueMatchesAny { key: "team".to_owned() }
    ));
    let terms = &object(&converted, "EC2NodeClass", "default")["spec"]["subnetSelectorTerms"];
    assert_eq!(*terms, json!([{"tags": {"team": "*"}}]));
    let values: Vec<String> = (0..31).map(|number| number.to_string()).collect();
    let many = with(&format!("{{team: '{}'}}", values.join(",")));
    assert!(matches!(
        reasons(&many, &Options::default())[..],
        [Reason::TooMany { count: 31, .. }]
    ));
    let keys: Vec<String> = (0..21).map(|number| format!("k{number}: v")).collect();
    let many = with(&format!("{{{}}}", keys.join(", ")));
    assert!(matches!(
        reasons(&many, &Options::default())[..],
        [Reason::TooMany { count: 21, .. }]
    ));
}

#[test]
fn inline_providers_are_read_strictly() {
    let inline = |provider: &str| {
        format!(
            "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {{name: x}}\nspec: {{provider: {{subnetSelector: {{a: b}}, securityGroupSelector: {{a: b}}, {provider}}}}}"
        )
    };
    to_v1(&inline("instanceProfile: nodes"), &Options::default());
    for field in [
        "novel: 1",
        "userData: x",
        "amiSelector: {a: b}",
        "detailedMonitoring: true",
        "capacityTypes: [spot]",
    ] {
        let told = refused(&inline(field), &Options::default());
        assert!(told[0].contains("no such field"), "{field}: {told:?}");
    }
}

#[test]
fn before_0_5_5_an_absent_selector_meant_the_clusters_tag() {
    let bare = "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: x}\nspec: {provider: {instanceProfile: nodes}}";
    assert_eq!(
        reasons(bare, &Options::default()),
        [Reason::NoSelector, Reason::NoSelector]
    );
    let options = Options {
        cluster_name: Some("demo".to_owned()),
        ..Options::default()
    };
    let converted = to_v1(bare, &options);
    let spec = &object(&converted, "EC2NodeClass", "x")["spec"];
    let cluster = json!([{"tags": {"kubernetes.io/cluster/demo": "*"}}]);
    assert_eq!(spec["subnetSelectorTerms"], cluster);
    assert_eq!(spec["securityGroupSelectorTerms"], cluster);
}

#[test]
fn facts_of_the_user_come_before_those_of_the_cluster() {
    let mut facts = Facts {
        cluster_name: Some("mine".to_owned()),
        ..Facts::default()
    };
    facts.fill(Facts {
        cluster_name: Some("theirs".to_owned()),
        unlimited_density: true,
        ..Facts::default()
    });
    assert_eq!(facts.cluster_name.as_deref(), Some("mine"));
    assert!(facts.unlimited_density);
}
