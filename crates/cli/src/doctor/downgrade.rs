//! What definitions of another release would lose of the objects that are here.
//!
//! An older definition makes the API server drop the fields that it does not know, at each object's next write. What is
//! compared is what an object has now with what is left of it after that and a way back.

use std::collections::BTreeMap;

use api::crds::Variant;
use kube_mem::schema::CrdSchema;
use serde_json::Value;

use super::{
    checks::{is_newer, or_ok},
    facts::{DEFINITIONS, Facts, OUR_KINDS, Objects, called, list, text},
    finding::Finding,
};
use crate::reader::{Kind, Unread};

const CHECK: &str = "downgrade";
/// How many objects are named before the rest is counted.
const SHOWN: usize = 3;
const KEEP: &str = "karpenter snapshot keeps what they say; take the fields out while this release runs, which knows what that means for nodes, or stay";

/// What this build would lose, or rather does not act on: where it is the older one, and meets definitions of a newer release.
pub fn of_this_build(facts: &Facts) -> Vec<Finding> {
    let ours: Vec<Value> = api::crds::all(Variant::Aws)
        .into_iter()
        .filter_map(|crd| serde_json::to_value(crd).ok())
        .collect();
    let installed = facts.of(DEFINITIONS);
    let is_newer = |kind: &&Kind| {
        let of = |definitions: &[Value]| definition(definitions, kind).cloned();
        of(&ours)
            .zip(of(installed))
            .is_some_and(|(ours, found)| is_newer(&ours, &found))
    };
    let newer: Vec<Kind> = OUR_KINDS.iter().filter(is_newer).copied().collect();
    if newer.is_empty() {
        return Vec::new();
    }
    losses(&newer, &facts.objects, installed, &ours)
}

fn definition<'a>(definitions: &'a [Value], kind: &Kind) -> Option<&'a Value> {
    let name = format!("{}.{}", kind.plural, kind.group);
    definitions.iter().find(|crd| text(crd, "/metadata/name") == name)
}

/// Findings about these kinds, if the definitions of `target` took the place of those that are `installed`.
pub fn losses(kinds: &[Kind], objects: &Objects, installed: &[Value], target: &[Value]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for kind in kinds {
        let found = match objects.get(kind) {
            Some(Ok(found)) => found,
            Some(Err(Unread::Absent)) | None => continue,
            Some(Err(why)) => {
                findings.push(Finding::unknown(
                    CHECK,
                    format!("{} cannot be read: {why}", kind.plural),
                ));
                continue;
            }
        };
        let Some(installed) = definition(installed, kind) else {
            continue;
        };
        match definition(target, kind) {
            Some(target) => findings.extend(narrowed(kind, found, installed, target)),
            None => findings.extend(unknown_kind(installed, found)),
        }
    }
    let count: usize = kinds
        .iter()
        .filter_map(|kind| objects.get(kind)?.as_ref().ok())
        .map(Vec::len)
        .sum();
    or_ok(findings, CHECK, format!("{count} objects would lose nothing"))
}

fn unknown_kind(installed: &Value, objects: &[Value]) -> Option<Finding> {
    let what = format!(
        "is unknown there: without the definition, {} would be gone",
        some(objects.iter().map(called))?
    );
    let fix = "karpenter snapshot keeps them; keep the definition (helm.sh/resource-policy: keep), and the older release leaves them alone";
    Some(
        Finding::problem(CHECK, what)
            .about(text(installed, "/metadata/name"))
            .fix(fix),
    )
}

/// The kind is known on both sides, though not with the same fields.
fn narrowed(kind: &Kind, objects: &[Value], installed: &Value, target: &Value) -> Vec<Finding> {
    let name = text(installed, "/metadata/name");
    let version = |definition: &Value, wanted: &str| {
        let mut versions = list(definition, "/spec/versions").iter();
        versions.find(|version| version["name"] == wanted).cloned()
    };
    let stored = list(installed, "/status/storedVersions")
        .iter()
        .filter_map(Value::as_str);
    let strange: Vec<&str> = stored.filter(|stored| version(target, stored).is_none()).collect();
    if !strange.is_empty() {
        let what = format!(
            "objects are stored as {}, which is unknown there: the API server refuses the definition",
            strange.join(", ")
        );
        let fix = "go back to a release that knows this version, and from there further";
        return vec![Finding::problem(CHECK, what).about(name).fix(fix)];
    }
    let Some(there) = version(target, kind.version).filter(|version| version["served"] == true) else {
        let what = format!("version {} is not served there", kind.version);
        return vec![
            Finding::problem(CHECK, what)
                .about(name)
                .fix("choose a release that serves it"),
        ];
    };
    let here = version(installed, kind.version).unwrap_or_default();
    let (here, there) = match (CrdSchema::compile(&here), CrdSchema::compile(&there)) {
        (Ok(here), Ok(there)) => (here, there),
        (Err(why), _) | (_, Err(why)) => {
            return vec![Finding::unknown(CHECK, format!("the schema cannot be read: {why}")).about(name)];
        }
    };
    // Pools of one template lose the same; a finding for each would hide the others.
    let mut alike: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for object in objects {
        let mut left = object.clone();
        there.prune(&mut left);
        there.default(&mut left);
        let refused = there.validate(&left, None);
        here.default(&mut left);
        let mut lost = Vec::new();
        missing(&object["spec"], &left["spec"], "spec", &mut lost);
        if !lost.is_empty() {
            alike
                .entry(format!("would lose {}", lost.join(", ")))
                .or_default()
                .push(called(object));
        }
        // What is wrong with a whole object follows from what is wrong inside.
        let refused: Vec<String> = refused
            .iter()
            .filter(|error| error.field != "<nil>")
            .map(ToString::to_string)
            .collect();
        if !refused.is_empty() {
            let what = format!("would be refused at the next change: {}", refused.join("; "));
            alike.entry(what).or_default().push(called(object));
        }
    }
    let findings = alike.into_iter().filter_map(|(what, names)| {
        let names = some(names.into_iter())?;
        Some(Finding::problem(CHECK, what).about(names).fix(KEEP))
    });
    findings.collect()
}

/// The fields of a value that are no longer there, or no longer the same.
fn missing(before: &Value, after: &Value, path: &str, found: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            for (name, value) in before {
                let path = format!("{path}.{name}");
                match after.get(name) {
                    Some(left) => missing(value, left, &path, found),
                    None if value.is_null() => {}
                    None => found.push(path),
                }
            }
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            for (at, (before, after)) in before.iter().zip(after).enumerate() {
                missing(before, after, &format!("{path}[{at}]"), found);
            }
        }
        // A null says as little as nothing; another value is a default that took the place of a choice.
        (before, after) if before == after || before.is_null() => {}
        _ => found.push(path.to_owned()),
    }
}

fn some(names: impl ExactSizeIterator<Item = String>) -> Option<String> {
    let count = names.len();
    let shown: Vec<String> = names.take(SHOWN).collect();
    match count.saturating_sub(SHOWN) {
        _ if shown.is_empty() => None,
        0 => Some(shown.join(", ")),
        more => Some(format!("{} and {more} more", shown.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::doctor::facts::{BUFFERS, EC2_CLASSES, OVERLAYS, POOLS};

    fn ours() -> Vec<Value> {
        let crds = api::crds::all(Variant::Aws);
        let values = crds.iter().map(|crd| serde_json::to_value(crd).expect("JSON"));
        values.collect()
    }

    /// Our definitions as a release before would have had them.
    fn older(name: &str, change: impl Fn(&mut Value)) -> Vec<Value> {
        let mut crds = ours();
        let wanted = crds.iter_mut().find(|crd| text(crd, "/metadata/name") == name);
        change(wanted.expect("a kind of ours"));
        crds
    }

    fn without(schema: &str, field: &str) -> impl Fn(&mut Value) {
        let place = format!("/spec/versions/0/schema/openAPIV3Schema/properties/spec{schema}/properties");
        move |crd: &mut Value| {
            let fields = crd.pointer_mut(&place).and_then(Value::as_object_mut);
            assert!(fields.expect("fields").remove(field).is_some(), "{field} is not there");
        }
    }

    fn pool(name: &str, spec: Value) -> Value {
        let mut pool = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": {
            "disruption": {"consolidateAfter": "0s"},
            "template": {"spec": {"requirements": [],
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}}}}});
        for (name, value) in spec.as_object().expect("fields") {
            pool["spec"][name] = value.clone();
        }
        pool
    }

    #[track_caller]
    fn check(kind: Kind, objects: Vec<Value>, target: &[Value], expected: &[&str]) {
        let objects = Objects::from([(kind, Ok(objects))]);
        let findings = losses(&OUR_KINDS, &objects, &ours(), target);
        let line = |finding: &Finding| match &finding.object {
            Some(object) => format!("{object}: {}", finding.what),
            None => finding.what.clone(),
        };
        assert_eq!(findings.iter().map(line).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_same_definitions_lose_nothing() {
        let pools = vec![pool("general", json!({})), pool("static", json!({"replicas": 3}))];
        check(POOLS, pools, &ours(), &["2 objects would lose nothing"]);
    }

    #[test]
    fn fields_that_are_unknown_there_are_named_with_the_objects_that_use_them() {
        let target = older("nodepools.karpenter.sh", without("", "replicas"));
        let mut pools = vec![pool("general", json!({}))];
        check(POOLS, pools.clone(), &target, &["1 objects would lose nothing"]);
        pools.extend(["a", "b", "c", "d"].map(|name| pool(name, json!({"replicas": 3}))));
        check(
            POOLS,
            pools,
            &target,
            &["nodepool/a, nodepool/b, nodepool/c and 1 more: would lose spec.replicas"],
        );
        let target = older("ec2nodeclasses.karpenter.k8s.aws", without("", "detailedMonitoring"));
        let class = json!({"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default"},
            "spec": {"role": "nodes", "detailedMonitoring": true, "amiSelectorTerms": [{"alias": "al2023@latest"}],
                "subnetSelectorTerms": [{"id": "subnet-1"}], "securityGroupSelectorTerms": [{"id": "sg-1"}]}});
        check(
            EC2_CLASSES,
            vec![class],
            &target,
            &["ec2nodeclass/default: would lose spec.detailedMonitoring"],
        );
    }

    /// Whoever did not choose a value gets it back from the definition that has it as its default.
    #[test]
    fn a_default_is_no_loss() {
        let target = older("nodepools.karpenter.sh", without("/properties/disruption", "budgets"));
        let mut chosen = pool("chosen", json!({}));
        chosen["spec"]["disruption"]["budgets"] = json!([{"nodes": "1"}]);
        let mut left = pool("left", json!({}));
        left["spec"]["disruption"]["budgets"] = json!([{"nodes": "10%"}]);
        check(POOLS, vec![left.clone()], &target, &["1 objects would lose nothing"]);
        check(
            POOLS,
            vec![chosen, left],
            &target,
            &["nodepool/chosen: would lose spec.disruption.budgets[0].nodes"],
        );
    }

    #[test]
    fn values_that_are_unknown_there_are_told_in_the_words_of_the_api_server() {
        let place = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/disruption/properties/consolidationPolicy/enum";
        let target = older("nodepools.karpenter.sh", |crd| {
            *crd.pointer_mut(place).expect("an enumeration") = json!(["WhenEmpty", "WhenEmptyOrUnderutilized"]);
        });
        let balanced = json!({"disruption": {"consolidateAfter": "0s", "consolidationPolicy": "Balanced"}});
        check(
            POOLS,
            vec![pool("general", balanced)],
            &target,
            &[
                "nodepool/general: would be refused at the next change: spec.disruption.consolidationPolicy: Unsupported value: \
               \"Balanced\": supported values: \"WhenEmpty\", \"WhenEmptyOrUnderutilized\"",
            ],
        );
    }

    #[test]
    fn kinds_and_versions_that_are_unknown_there_are_named() {
        let mut target = ours();
        target.retain(|crd| text(crd, "/metadata/name") != "nodeoverlays.karpenter.sh");
        let overlay =
            json!({"kind": "NodeOverlay", "metadata": {"name": "dearer"}, "spec": {"priceAdjustment": "+1%"}});
        check(
            OVERLAYS,
            vec![overlay],
            &target,
            &["nodeoverlays.karpenter.sh: is unknown there: without the definition, nodeoverlay/dearer would be gone"],
        );
        check(OVERLAYS, vec![], &target, &["0 objects would lose nothing"]);

        let target = older("capacitybuffers.autoscaling.x-k8s.io", |crd| {
            crd["spec"]["versions"][0]["name"] = json!("v1alpha1");
        });
        check(
            BUFFERS,
            vec![],
            &target,
            &["capacitybuffers.autoscaling.x-k8s.io: version v1beta1 is not served there"],
        );
        let mut installed = ours();
        installed[3]["status"] = json!({"storedVersions": ["v1beta1"]});
        let findings = losses(&OUR_KINDS, &Objects::from([(BUFFERS, Ok(vec![]))]), &installed, &target);
        let what = "objects are stored as v1beta1, which is unknown there: the API server refuses the definition";
        assert_eq!(findings[0].what, what);
    }

    #[test]
    fn what_cannot_be_read_is_not_called_safe() {
        let objects = Objects::from([(POOLS, Err(Unread::Forbidden("no".to_owned())))]);
        let findings = losses(&OUR_KINDS, &objects, &ours(), &ours());
        assert_eq!(
            findings,
            [Finding::unknown(CHECK, "nodepools cannot be read: not allowed: no")]
        );
    }
}
