//! Documents as YAML, and the judges that every result has to satisfy.

use std::sync::LazyLock;

use api::crds::Variant;
use kube_mem::schema::CrdSchema;
use legacy::{Change, Conversion, Input, Options, Reason, Target, convert};
use serde_json::Value;

pub fn inputs(yaml: &str) -> Vec<Input> {
    let documents = yaml.split("\n---").filter(|text| !text.trim().is_empty());
    documents
        .enumerate()
        .map(|(index, text)| Input {
            place: format!("document {}", index + 1),
            object: serde_saphyr::from_str(text.trim_start_matches("---")).expect("the test writes YAML"),
        })
        .collect()
}

/// Converts to v1. The result is admitted by the schemas of v1, and converting it again changes nothing.
#[track_caller]
pub fn to_v1(yaml: &str, options: &Options) -> Conversion {
    let converted = convert(&inputs(yaml), options).unwrap_or_else(|refusals| panic!("{refusals:#?}"));
    is_admitted(&converted);
    is_settled(&converted, options);
    converted
}

#[track_caller]
pub fn to_v1beta1(yaml: &str) -> Conversion {
    convert(&inputs(yaml), &beta()).unwrap_or_else(|refusals| panic!("{refusals:#?}"))
}

pub fn beta() -> Options {
    Options {
        target: Target::V1Beta1,
        ..Options::default()
    }
}

/// The reasons why nothing is converted.
#[track_caller]
pub fn refused(yaml: &str, options: &Options) -> Vec<String> {
    let refusals = convert(&inputs(yaml), options).expect_err("a refusal");
    refusals.iter().map(ToString::to_string).collect()
}

#[track_caller]
pub fn reasons(yaml: &str, options: &Options) -> Vec<Reason> {
    let refusals = convert(&inputs(yaml), options).expect_err("a refusal");
    refusals.into_iter().map(|refusal| refusal.reason).collect()
}

pub fn warns(conversion: &Conversion, change: &Change) -> bool {
    conversion.warnings.iter().any(|warning| warning.change == *change)
}

/// The object of this kind and name.
#[track_caller]
pub fn object<'a>(conversion: &'a Conversion, kind: &str, name: &str) -> &'a Value {
    let found = conversion
        .objects()
        .find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
    found.unwrap_or_else(|| panic!("{kind} {name} is missing"))
}

static SCHEMAS: LazyLock<Vec<(String, CrdSchema)>> = LazyLock::new(|| {
    let crds = api::crds::all(Variant::Aws)
        .into_iter()
        .map(|crd| serde_json::to_value(crd).expect("a CRD is JSON"));
    let schema = |crd: Value| {
        let kind = crd["spec"]["names"]["kind"]
            .as_str()
            .expect("a CRD has a kind")
            .to_owned();
        (
            kind,
            CrdSchema::compile(&crd["spec"]["versions"][0]).expect("our schemas compile"),
        )
    };
    crds.map(schema).collect()
});

/// The schema of a kind of v1.
pub fn schema(object: &Value) -> Option<&'static CrdSchema> {
    let karpenters = ["karpenter.sh/v1", "karpenter.k8s.aws/v1"]
        .iter()
        .any(|version| object["apiVersion"] == *version);
    let schemas = karpenters.then_some(SCHEMAS.iter())?;
    schemas
        .filter(|(kind, _)| object["kind"] == kind.as_str())
        .map(|(_, schema)| schema)
        .next()
}

#[track_caller]
pub fn is_admitted(conversion: &Conversion) {
    for object in conversion.objects() {
        let Some(schema) = schema(object) else { continue };
        let mut stored = object.clone();
        let unknown = schema.prune(&mut stored);
        assert!(unknown.is_empty(), "{unknown:?} in {object:#}");
        schema.default(&mut stored);
        let errors = schema.validate(&stored, None);
        assert!(errors.is_empty(), "{errors:#?} in {object:#}");
    }
}

#[track_caller]
pub fn is_settled(conversion: &Conversion, options: &Options) {
    let again: Vec<Input> = conversion
        .objects()
        .map(|object| Input {
            place: String::new(),
            object: object.clone(),
        })
        .collect();
    let twice = convert(&again, options).unwrap_or_else(|refusals| panic!("{refusals:#?}"));
    assert!(!twice.changes_anything(), "a second conversion changes {twice:#?}");
}

/// A node template that needs nothing else.
pub const TEMPLATE: &str = "
apiVersion: karpenter.k8s.aws/v1alpha1
kind: AWSNodeTemplate
metadata: {name: default}
spec:
  subnetSelector: {karpenter.sh/discovery: demo}
  securityGroupSelector: {karpenter.sh/discovery: demo}
  instanceProfile: nodes
";

/// A Provisioner with this spec, and the template that it refers to.
pub fn provisioner(spec: &str) -> String {
    let spec: String = spec.lines().map(|line| format!("  {line}\n")).collect();
    format!(
        "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {{name: default}}\nspec:\n  providerRef: {{name: default}}\n{spec}\n---{TEMPLATE}"
    )
}
