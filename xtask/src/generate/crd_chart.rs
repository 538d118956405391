//! The chart `karpenter-crd`, and the same manifests as plain files.
//!
//! The manifests live once, as `files/*.yaml`, where `kubectl apply` can use them as they are. Helm installs them
//! through one small template each, which adds the user's annotations; as templates rather than as `crds/` they are
//! also upgraded. `kwok/` holds the variant for the simulated provider and is not part of the chart.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use api::crds::{self, Variant};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

const CHART: &str = "charts/karpenter-crd";

/// The kinds before v1, which the chart `karpenter` installs where it is asked to.
const LEGACY: &str = "charts/karpenter/legacy";

const HEADER: &str = "# Generated from crates/api by `cargo xtask generate`.\n";

const VALUES: &str = "\
# Annotations that are added to every custom resource definition.
additionalAnnotations: {}
";

const HELM_IGNORE: &str = "\
# For clusters of the simulated provider, applied with kubectl.
kwok/
";

const HELPERS: &str = r#"{{/* One definition from files/, with the user's annotations added. */}}
{{- define "karpenter-crd.definition" -}}
{{- $definition := .root.Files.Get (printf "files/%s" .file) | fromYaml -}}
{{- with .root.Values.additionalAnnotations -}}
{{- $_ := set $definition.metadata "annotations" (merge (dict) . (default (dict) $definition.metadata.annotations)) -}}
{{- end -}}
{{ toYaml $definition }}
{{- end -}}
"#;

pub fn owned_directories() -> Vec<PathBuf> {
    let of_chart = ["files", "kwok", "templates"]
        .iter()
        .map(|directory| Path::new(CHART).join(directory));
    of_chart.chain([Path::new(LEGACY).to_owned()]).collect()
}

pub fn files() -> Result<BTreeMap<PathBuf, String>> {
    let mut files = BTreeMap::new();
    let mut add = |path: &str, contents: String| files.insert(Path::new(CHART).join(path), contents);
    add(
        "Chart.yaml",
        chart("karpenter-crd", "The custom resource definitions of Karpenter."),
    );
    add("values.yaml", format!("{HEADER}{VALUES}"));
    add(".helmignore", format!("{HEADER}{HELM_IGNORE}"));
    add("templates/_helpers.tpl", HELPERS.to_owned());
    for crd in crds::all(Variant::Aws) {
        let file = file_name(&crd);
        let template =
            format!("{{{{ include \"karpenter-crd.definition\" (dict \"root\" $ \"file\" \"{file}\") }}}}\n");
        add(&format!("templates/{file}"), template);
        add(&format!("files/{file}"), manifest(&crd)?);
    }
    for crd in crds::all(Variant::Kwok) {
        add(&format!("kwok/{}", file_name(&crd)), manifest(&crd)?);
    }
    for crd in crds::legacy() {
        files.insert(Path::new(LEGACY).join(file_name(&crd)), manifest(&crd)?);
    }
    // The other chart is written by hand; only its version and the kinds before v1 follow from the code.
    files.insert(
        Path::new("charts/karpenter/Chart.yaml").to_owned(),
        chart("karpenter", "Karpenter, a node autoscaler for Kubernetes."),
    );
    Ok(files)
}

fn chart(name: &str, description: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "{HEADER}\
         apiVersion: v2\n\
         name: {name}\n\
         description: {description}\n\
         type: application\n\
         version: {version}\n\
         appVersion: {version}\n\
         keywords: [autoscaler, cluster, node, scheduler]\n"
    )
}

/// As controller-gen names them: `karpenter.sh_nodepools.yaml`.
fn file_name(crd: &CustomResourceDefinition) -> String {
    format!("{}_{}.yaml", crd.spec.group, crd.spec.names.plural)
}

/// The definition as YAML, on one line per value: a rule or a pattern that is broken over lines cannot be searched for.
fn manifest(crd: &CustomResourceDefinition) -> Result<String> {
    let mut definition = serde_json::to_value(crd)?;
    write_whole_numbers_as_such(&mut definition);
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    let yaml = serde_saphyr::to_string_with_options(&definition, options)
        .with_context(|| format!("cannot write the definition of {} as YAML", crd.spec.names.kind))?;
    let read_back: CustomResourceDefinition = serde_saphyr::from_str(&yaml)?;
    ensure!(
        read_back == *crd,
        "the YAML of {} does not read back as it was written",
        crd.spec.names.kind
    );
    Ok(format!("{HEADER}{}\n", yaml.trim_end()))
}

/// Bounds are floating-point numbers in the Kubernetes types; people write `minimum: 1`.
fn write_whole_numbers_as_such(value: &mut Value) {
    match value {
        Value::Object(map) => map.values_mut().for_each(write_whole_numbers_as_such),
        Value::Array(list) => list.iter_mut().for_each(write_whole_numbers_as_such),
        Value::Number(number) => {
            if let Some(float) = number.as_f64().filter(|float| float.fract() == 0.0) {
                *value = Value::from(float as i64);
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}
