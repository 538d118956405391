use serde_json::Value;

use super::*;

/// Every schema in a manifest, with its path.
fn schemas(crds: Vec<CustomResourceDefinition>) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for crd in crds {
        let kind = crd.spec.names.kind.clone();
        let schema = crd.spec.versions[0].schema.as_ref().expect("a schema");
        let root = serde_json::to_value(&schema.open_api_v3_schema).expect("plain data");
        collect(kind, root, &mut found);
    }
    found
}

fn collect(path: String, schema: Value, found: &mut Vec<(String, Value)>) {
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        collect(format!("{path}.{name}"), inner.clone(), found);
    }
    for (keyword, step) in [("items", "[]"), ("additionalProperties", "{}")] {
        if schema[keyword].is_object() {
            collect(format!("{path}{step}"), schema[keyword].clone(), found);
        }
    }
    found.push((path, schema));
}

/// AP1.3: what derivation would add and the API server would take differently.
#[test]
fn nothing_is_nullable_and_no_number_is_unsigned() {
    let variants = [Variant::Core, Variant::Aws, Variant::Kwok].map(all);
    for crds in variants.into_iter().chain([legacy()]) {
        for (path, schema) in schemas(crds) {
            assert_eq!(schema["nullable"], Value::Null, "{path}");
            let format = schema["format"].as_str().unwrap_or_default();
            assert!(
                ["", "int32", "int64", "date-time"].contains(&format),
                "{path}: {format}"
            );
            let words = schema["enum"].as_array().cloned().unwrap_or_default();
            assert!(words.iter().all(Value::is_string), "{path}");
        }
    }
}

/// A field without a type would be an open door: only the quantities, which are one of two types, have none.
#[test]
fn every_schema_has_a_type_and_every_field_a_description() {
    let crds = [all(Variant::Aws), all(Variant::Kwok), legacy()].concat();
    for (path, schema) in schemas(crds) {
        let is_quantity = schema["x-kubernetes-int-or-string"] == true;
        assert!(schema["type"].is_string() || is_quantity, "{path}");
        let is_field = path.contains('.') && !path.ends_with(['}', ']']);
        let is_standard = [".apiVersion", ".kind", ".metadata"]
            .iter()
            .any(|name| path.ends_with(name));
        assert!(!is_field || is_standard || schema["description"].is_string(), "{path}");
    }
}

/// AP2: the inventory.
#[test]
fn the_kinds_have_their_names_scopes_and_subresources() {
    let describe = |crd: &CustomResourceDefinition| {
        let names = &crd.spec.names;
        let subresources = crd.spec.versions[0].subresources.as_ref().expect("subresources");
        assert!(subresources.status.is_some());
        format!(
            "{} {} {} {:?} {:?} {} scale={}",
            names.kind,
            crd.metadata.name.as_deref().unwrap_or_default(),
            crd.spec.versions[0].name,
            names.short_names.as_deref().unwrap_or_default(),
            names.categories.as_deref().unwrap_or_default(),
            crd.spec.scope,
            subresources.scale.is_some(),
        )
    };
    let mut kinds: Vec<String> = all(Variant::Aws).iter().map(describe).collect();
    kinds.extend(all(Variant::Kwok).iter().skip(4).map(describe));
    kinds.extend(legacy().iter().map(describe));
    assert_eq!(
        kinds,
        [
            r#"NodePool nodepools.karpenter.sh v1 [] ["karpenter"] Cluster scale=true"#,
            r#"NodeClaim nodeclaims.karpenter.sh v1 [] ["karpenter"] Cluster scale=false"#,
            r#"NodeOverlay nodeoverlays.karpenter.sh v1alpha1 ["overlays"] ["karpenter"] Cluster scale=false"#,
            r#"CapacityBuffer capacitybuffers.autoscaling.x-k8s.io v1beta1 ["cb"] ["autoscaling"] Namespaced scale=false"#,
            r#"EC2NodeClass ec2nodeclasses.karpenter.k8s.aws v1 ["ec2nc", "ec2ncs"] ["karpenter"] Cluster scale=false"#,
            r#"KWOKNodeClass kwoknodeclasses.karpenter.kwok.sh v1alpha1 ["kwoknc", "kwokncs"] ["karpenter"] Cluster scale=false"#,
            r#"Provisioner provisioners.karpenter.sh v1alpha5 [] ["karpenter"] Cluster scale=false"#,
            r#"AWSNodeTemplate awsnodetemplates.karpenter.k8s.aws v1alpha1 [] ["karpenter"] Cluster scale=false"#,
            r#"Machine machines.karpenter.sh v1alpha5 [] ["karpenter"] Cluster scale=false"#,
        ]
    );
}
