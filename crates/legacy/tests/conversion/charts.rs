//! The charts of the time, as they were published: their values, the Provisioners that they make, their schemas.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kube_mem::schema::CrdSchema;
use legacy::{Input, Options, convert};
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fixtures::{inputs, is_admitted, is_settled};

/// The unpacked charts from 0.2 on, by release.
struct Charts {
    releases: BTreeMap<String, PathBuf>,
    _folder: TempDir,
}

fn charts() -> Charts {
    let folder = tempfile::tempdir().expect("a folder");
    let unpack = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/legacy-charts/unpack");
    let output = Command::new(unpack).arg(folder.path()).output().expect("the tool runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut releases = BTreeMap::new();
    for entry in fs::read_dir(folder.path()).expect("the folder") {
        let path = entry.expect("an entry").path();
        let release = path
            .file_name()
            .and_then(|name| name.to_str())
            .expect("a name")
            .to_owned();
        if !release.starts_with("0.1.") {
            releases.insert(release, path);
        }
    }
    assert_eq!(releases.len(), 59, "{:?}", releases.keys());
    Charts {
        releases,
        _folder: folder,
    }
}

fn cluster() -> Options {
    Options {
        cluster_name: Some("demo".to_owned()),
        ..Options::default()
    }
}

#[track_caller]
fn converts(inputs: &[Input], options: &Options, release: &str) {
    let converted = convert(inputs, options).unwrap_or_else(|refusals| panic!("{release}: {refusals:#?}"));
    assert!(converted.recognized, "{release}");
    is_admitted(&converted);
    is_settled(&converted, options);
}

#[test]
fn the_values_of_every_chart_convert() {
    let mut count = 0;
    for (release, path) in charts().releases {
        // The first charts were one manifest without values.
        let Ok(text) = fs::read_to_string(path.join("values.yaml")) else {
            assert!(
                ["0.2.0", "0.2.1", "0.2.2", "0.2.3"].contains(&release.as_str()),
                "{release}"
            );
            continue;
        };
        let values = Input {
            place: release.clone(),
            object: serde_saphyr::from_str(&text).expect("YAML"),
        };
        converts(std::slice::from_ref(&values), &Options::default(), &release);
        converts(&[values], &cluster(), &release);
        count += 1;
    }
    assert_eq!(count, 55);
}

#[test]
fn the_provisioners_that_charts_make_convert() {
    let mut made = Vec::new();
    for (release, path) in charts().releases {
        for entry in fs::read_dir(path.join("templates")).expect("templates") {
            let path = entry.expect("an entry").path();
            let Ok(template) = fs::read_to_string(&path) else {
                continue;
            };
            if !template.contains("\nkind: Provisioner\n") {
                continue;
            }
            made.push(release.clone());
            let mut values: Value = json!({"create": true, "ttlSecondsAfterEmpty": 300, "provider": {}, "labels": {}});
            converts(&inputs(&rendered(&template, &values)), &cluster(), &release);
            values["ttlSecondsUntilExpired"] = json!(86400);
            values["provider"] = json!({"instanceProfile": "nodes", "subnetSelector": {"Name": "a"}});
            values["taints"] = json!([{"key": "a", "effect": "NoSchedule"}]);
            values["requirements"] = json!([{"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}]);
            values["labels"] = json!({"team": "a"});
            let objects = inputs(&rendered(&template, &values));
            assert_eq!(objects[0].object["spec"]["labels"], json!({"team": "a"}));
            converts(&objects, &cluster(), &release);
        }
    }
    assert_eq!(made, ["0.4.3"]);
}

/// Renders the few constructs that the template of the default Provisioner uses, with these `.Values.defaultProvisioner`.
fn rendered(template: &str, values: &Value) -> String {
    let mut lines = Vec::new();
    let mut blocks: Vec<Option<Value>> = Vec::new();
    let value = |expression: &str| {
        let field = expression.trim().trim_start_matches(".Values.defaultProvisioner.");
        values.get(field).cloned().unwrap_or_default()
    };
    let truth = |value: &Value| {
        !matches!(value, Value::Null | Value::Bool(false)) && *value != json!({}) && *value != json!([])
    };
    for line in template.lines() {
        let action = line.trim().strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
        let action = action.map(|action| action.trim_start_matches('-').trim());
        let shown = blocks.iter().all(Option::is_some);
        match action.and_then(|action| action.split_once(' ').or(Some((action, "")))) {
            Some(("if" | "with", expression)) => blocks.push(Some(value(expression)).filter(truth)),
            Some(("end", _)) => drop(blocks.pop()),
            Some(("toYaml", _)) if shown => {
                let context = blocks.last().cloned().flatten().expect("toYaml stands in a block");
                lines.push(format!("      {context}"));
            }
            Some(_) => {}
            None if shown => {
                let inline = line
                    .split_once("{{")
                    .and_then(|(before, rest)| Some((before, rest.split_once("}}")?.0)));
                lines.push(inline.map_or_else(
                    || line.to_owned(),
                    |(before, expression)| format!("{before}{}", value(expression)),
                ));
            }
            None => {}
        }
    }
    lines.join("\n")
}

/// A spec that admission of 0.4.3 let through.
fn spec() -> impl Strategy<Value = Value> {
    let requirement = prop_oneof![
        Just(json!({"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-west-2a"]})),
        Just(
            json!({"key": "node.kubernetes.io/instance-type", "operator": "NotIn", "values": ["m5.large", "c5.large"]})
        ),
        Just(json!({"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64", "amd64"]})),
        Just(json!({"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]})),
    ];
    let selector = || {
        of(select(vec![
            json!({"Name": "*Public*"}),
            json!({"kubernetes.io/cluster/demo": "*"}),
            json!({"a": "x,y", "b": "z"}),
        ]))
    };
    let provider = (selector(), selector(), of(Just(json!({"team": "a"})))).prop_map(|(subnets, groups, tags)| {
        let mut provider = json!({"instanceProfile": "nodes"});
        for (field, value) in [
            ("subnetSelector", subnets),
            ("securityGroupSelector", groups),
            ("tags", tags),
        ] {
            if let Some(value) = value {
                provider[field] = value;
            }
        }
        provider
    });
    let taint = select(vec![
        json!({"key": "a", "effect": "NoSchedule"}),
        json!({"key": "example.com/b", "effect": "NoExecute", "value": "c"}),
    ]);
    (
        of(select(vec![
            json!({"team": "a"}),
            json!({"topology.kubernetes.io/zone": "us-west-2a"}),
        ])),
        of(prop::collection::vec(requirement, 0..5)),
        of(taint.prop_map(|taint| json!([taint]))),
        of(provider),
        of(0_i64..=i64::from(i32::MAX)),
        of(0_i64..=i64::from(i32::MAX)),
    )
        .prop_map(|(labels, requirements, taints, provider, after_empty, until_expired)| {
            let mut spec = json!({});
            for (field, value) in [
                ("labels", labels),
                ("requirements", requirements.map(Value::from)),
                ("taints", taints),
                ("provider", provider),
                ("ttlSecondsAfterEmpty", after_empty.map(Value::from)),
                ("ttlSecondsUntilExpired", until_expired.map(Value::from)),
            ] {
                if let Some(value) = value {
                    spec[field] = value;
                }
            }
            spec
        })
}

#[test]
fn what_the_schema_of_0_4_3_accepts_is_accepted() {
    let charts = charts();
    let text =
        fs::read_to_string(charts.releases["0.4.3"].join("crds/karpenter.sh_provisioners.yaml")).expect("the CRD");
    let crd = &inputs(&text)[0].object;
    let schema = CrdSchema::compile(&crd["spec"]["versions"][0]).expect("the schema compiles");
    let mut runner = TestRunner::new(Config {
        cases: 512,
        ..Config::default()
    });
    let accepted = runner.run(&spec(), |spec| {
        let object = json!({
            "apiVersion": "karpenter.sh/v1alpha5",
            "kind": "Provisioner",
            "metadata": {"name": "default"},
            "spec": spec,
        });
        let mut stored = object.clone();
        prop_assert!(schema.prune(&mut stored).is_empty());
        prop_assert!(schema.validate(&stored, None).is_empty());
        let inputs = [Input {
            place: String::new(),
            object,
        }];
        let converted =
            convert(&inputs, &cluster()).map_err(|refusals| TestCaseError::fail(format!("{refusals:#?}")))?;
        prop_assert_eq!(converted.outputs.len(), 2);
        is_admitted(&converted);
        Ok(())
    });
    accepted.unwrap_or_else(|failure| panic!("{failure}"));
}

/// The definitions of a release that our program can take the place of, by the kind that they define.
fn definitions(path: &Path) -> Vec<Value> {
    let Ok(entries) = fs::read_dir(path.join("crds")) else {
        return Vec::new();
    };
    let files = entries.map(|entry| fs::read_to_string(entry.expect("an entry").path()).expect("a definition"));
    let documents: Vec<Value> = files.flat_map(|text| inputs(&text)).map(|input| input.object).collect();
    documents
        .into_iter()
        .filter(|document| document["kind"] == "CustomResourceDefinition")
        .collect()
}

/// Every schema within a schema, by its path.
fn schemas<'a>(path: &str, schema: &'a Value, found: &mut BTreeMap<String, &'a Value>) {
    found.insert(path.to_owned(), schema);
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        schemas(&format!("{path}.{name}"), inner, found);
    }
    for (keyword, step) in [("items", "[]"), ("additionalProperties", "{}")] {
        if schema[keyword].is_object() {
            schemas(&format!("{path}{step}"), &schema[keyword], found);
        }
    }
}

/// What keeps an object out.
const BOUNDS: &[&str] = &[
    "type",
    "format",
    "pattern",
    "enum",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "maxProperties",
    "x-kubernetes-validations",
];

/// Our definition of a kind has every field that the old one had, of the same type, and no bound that the old one had not.
#[test]
fn what_the_definitions_of_the_charts_admit_ours_admit() {
    let ours: Vec<Value> = api::crds::legacy().iter().map(|crd| json!(crd)).collect();
    let mut compared = 0;
    for (release, path) in charts().releases {
        for old in definitions(&path) {
            let Some(new) = ours
                .iter()
                .find(|crd| crd["metadata"]["name"] == old["metadata"]["name"])
            else {
                continue;
            };
            let versions = old["spec"]["versions"].as_array().expect("versions");
            let Some(version) = versions
                .iter()
                .find(|one| one["name"] == new["spec"]["versions"][0]["name"])
            else {
                continue;
            };
            let (mut was, mut is) = (BTreeMap::new(), BTreeMap::new());
            schemas("", &version["schema"]["openAPIV3Schema"], &mut was);
            schemas("", &new["spec"]["versions"][0]["schema"]["openAPIV3Schema"], &mut is);
            for (field, old) in was {
                // Copied from the inline provider, whose type they told; nobody could set them to anything else.
                if [".spec.apiVersion", ".spec.kind"].contains(&field.as_str()) {
                    continue;
                }
                let new = is
                    .get(&field)
                    .unwrap_or_else(|| panic!("{release}: {field} is missing"));
                for bound in BOUNDS.iter().filter(|bound| !new[**bound].is_null()) {
                    // Bounds are floating-point numbers in the Kubernetes types.
                    let same = new[*bound] == old[*bound]
                        || (new[*bound].is_f64() && new[*bound].as_f64() == old[*bound].as_f64());
                    assert!(
                        same,
                        "{release}: {field} has {bound} {}, and had {}",
                        new[*bound], old[*bound]
                    );
                }
                let required = |schema: &Value| schema["required"].as_array().cloned().unwrap_or_default();
                let had = required(old);
                assert!(
                    required(new).iter().all(|one| had.contains(one)),
                    "{release}: {field} requires more"
                );
            }
            compared += 1;
        }
    }
    assert_eq!(compared, 53);
}
