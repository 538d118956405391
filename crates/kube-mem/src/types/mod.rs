//! Merge facts of the built-in kinds, read from their OpenAPI definitions.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;

use crate::openapi::{definition, name_of};
use crate::registry::{Gvk, builtin_types};
use crate::schema::{Builder, TypeSchema};

/// A process has few kinds and many servers, so what was read once is kept.
static READ: LazyLock<Mutex<BTreeMap<Gvk, Arc<TypeSchema>>>> = LazyLock::new(Mutex::default);

/// The merge facts of a built-in kind; none for kinds that this server does not know.
pub fn of(gvk: &Gvk) -> Option<Arc<TypeSchema>> {
    if let Some(types) = READ.lock().get(gvk) {
        return Some(types.clone());
    }
    let name = name_of(gvk);
    definition(&name)?;
    let mut builder = Builder::new(&definition);
    let root = builder.named(&name);
    let has_status = builtin_types()
        .iter()
        .any(|ty| ty.gvk() == *gvk && ty.subresource("status").is_some());
    let types = Arc::new(
        builder
            .finish(root)
            .with_status(has_status)
            .with_fixed_labels(gvk.kind == "Deployment"),
    );
    READ.lock().insert(gvk.clone(), types.clone());
    Some(types)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::ListKind;

    #[test]
    fn a_pods_ports_are_told_apart_by_number_and_protocol() {
        let pod = of(&Gvk::new("", "v1", "Pod")).expect("pods are built in");
        let field = |node, name: &str| pod.node(node).map.as_ref().expect("a map").fields[name].clone();
        let items = |node| pod.node(node).list.clone().expect("a list");
        let containers = items(field(field(pod.root(), "spec").node, "containers").node);
        assert_eq!(containers.kind, ListKind::Keyed(vec!["name".into()]));
        let ports = items(field(containers.items, "ports").node);
        assert_eq!(
            ports.kind,
            ListKind::Keyed(vec!["containerPort".into(), "protocol".into()])
        );
        assert_eq!(field(ports.items, "protocol").default, Some("TCP".into()));
    }

    #[test]
    fn a_definition_may_refer_to_itself() {
        assert!(of(&Gvk::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition")).is_some());
    }

    #[test]
    fn unknown_kinds_have_no_facts() {
        assert!(of(&Gvk::new("example.com", "v1", "Widget")).is_none());
    }
}
