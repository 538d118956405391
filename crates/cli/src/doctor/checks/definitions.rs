//! Whether the API server knows our kinds as this build does, and nothing of older releases is in the way.

use std::collections::BTreeSet;

use api::crds::Variant;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

use super::or_ok;
use crate::{
    doctor::{
        facts::{DEFINITIONS, EC2_CLASSES, Facts, KWOK_CLASSES, MUTATING, POOLS, SERVICES, VALIDATING, list, text},
        finding::Finding,
    },
    reader::Kind,
};

const CHECK: &str = "definitions";
const UPGRADE: &str = "helm upgrade --install karpenter-crd charts/karpenter-crd (or: karpenter crds | kubectl apply --server-side --force-conflicts -f -)";
const UPGRADE_KWOK: &str = "karpenter crds --provider kwok | kubectl apply --server-side --force-conflicts -f -";
/// How many fields are named before the rest is counted.
const SHOWN: usize = 3;
/// Kinds of the releases before 0.33, and the groups that they were in.
const OLDER: [&str; 3] = [
    "provisioners.karpenter.sh",
    "machines.karpenter.sh",
    "awsnodetemplates.karpenter.k8s.aws",
];

pub fn definitions(facts: &Facts) -> Vec<Finding> {
    if let Some(why) = facts.unread(DEFINITIONS) {
        return vec![Finding::unknown(CHECK, format!("definitions cannot be read: {why}"))];
    }
    let wanted = wanted(facts);
    let count = wanted.len();
    let mut findings = Vec::new();
    for crd in wanted {
        let name = crd.metadata.name.clone().unwrap_or_default();
        let ours = serde_json::to_value(crd).unwrap_or_default();
        let found = facts
            .of(DEFINITIONS)
            .iter()
            .find(|found| text(found, "/metadata/name") == name);
        match found {
            Some(found) => findings.extend(compare(&name, &ours, found, facts)),
            None if is_optional(&name) => findings.push(
                Finding::warning(CHECK, "is not there; its feature stays idle")
                    .about(&name)
                    .fix(UPGRADE),
            ),
            None => findings.push(Finding::problem(CHECK, "is not there").about(&name).fix(upgrade(&name))),
        }
    }
    or_ok(
        findings,
        CHECK,
        format!("all {count} kinds are served as this build knows them"),
    )
}

/// The definitions that have to be there: with the node classes of the charts, or those of the simulated provider where only
/// these are in use.
fn wanted(facts: &Facts) -> Vec<CustomResourceDefinition> {
    let class = |pool: &Value| text(pool, "/spec/template/spec/nodeClassRef/group").to_owned();
    let named: Vec<String> = facts.of(POOLS).iter().map(class).collect();
    let is_used = |kind: Kind| {
        let name = format!("{}.{}", kind.plural, kind.group);
        let mut installed = facts.of(DEFINITIONS).iter();
        named.iter().any(|group| group == kind.group) || installed.any(|found| text(found, "/metadata/name") == name)
    };
    let (ec2, kwok) = (is_used(EC2_CLASSES), is_used(KWOK_CLASSES));
    let mut wanted = api::crds::all(if kwok && !ec2 { Variant::Kwok } else { Variant::Aws });
    if kwok && ec2 {
        let kwoks = api::crds::all(Variant::Kwok).into_iter();
        wanted.extend(kwoks.filter(|crd| crd.spec.group == KWOK_CLASSES.group));
    }
    wanted
}

/// What brings a definition, which is in the charts or for trying things out.
fn upgrade(name: &str) -> &'static str {
    match name.ends_with(KWOK_CLASSES.group) {
        true => UPGRADE_KWOK,
        false => UPGRADE,
    }
}

/// Kinds without which nodes still come and go.
fn is_optional(name: &str) -> bool {
    name.starts_with("capacitybuffers") || name.starts_with("nodeoverlays")
}

fn compare(name: &str, ours: &Value, found: &Value, facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    let version = text(ours, "/spec/versions/0/name");
    let served = list(found, "/spec/versions")
        .iter()
        .find(|version_found| version_found["name"] == version && version_found["served"] == true);
    let Some(served) = served else {
        let what = format!("version {version} is not served");
        return vec![Finding::problem(CHECK, what).about(name).fix(upgrade(name))];
    };
    let unserved: Vec<&str> = list(found, "/status/storedVersions")
        .iter()
        .filter_map(Value::as_str)
        .filter(|stored| *stored != version)
        .collect();
    if !unserved.is_empty() {
        let what = format!("objects may still be stored as {}", unserved.join(", "));
        let fix = format!(
            "write every object again (kubectl get {plural} -o name | xargs -I@ kubectl annotate --overwrite @ karpenter.sh/rewritten=true), then kubectl patch crd {name} --subresource=status --type=merge -p '{{\"status\":{{\"storedVersions\":[\"{version}\"]}}}}'",
            plural = text(found, "/spec/names/plural"),
        );
        findings.push(Finding::warning(CHECK, what).about(name).fix(fix));
    }
    if text(found, "/spec/conversion/strategy") == "Webhook" {
        findings.extend(converted(name, found, facts));
    }
    let (known, wanted) = (fields(served), fields(&ours["spec"]["versions"][0]));
    let missing: Vec<&String> = wanted.difference(&known).collect();
    if !missing.is_empty() {
        let what = format!("is of an older release: it has no {}", some(&missing));
        findings.push(Finding::problem(CHECK, what).about(name).fix(upgrade(name)));
    }
    let extra: Vec<&String> = known.difference(&wanted).collect();
    if !extra.is_empty() {
        let what = format!("is of a newer release: this build does not act on {}", some(&extra));
        let fix = "upgrade the controller; objects that use these fields are named under downgrade";
        findings.push(Finding::warning(CHECK, what).about(name).fix(fix));
    }
    findings
}

/// Releases 1.0.x converted by a webhook. A definition that asks one that nobody serves makes every read fail.
fn converted(name: &str, found: &Value, facts: &Facts) -> Option<Finding> {
    let client = found.pointer("/spec/conversion/webhook/clientConfig")?;
    let (namespace, service) = (text(client, "/service/namespace"), text(client, "/service/name"));
    let what = format!("asks the webhook {namespace}/{service} for conversions, which needs legacy.webhooks.enabled");
    let finding = if is_answered(client, facts) {
        Finding::warning
    } else {
        Finding::problem
    };
    Some(finding(CHECK, what).about(name).fix(UPGRADE))
}

/// Whether the service that a webhook asks is there and offers the port.
fn is_answered(client: &Value, facts: &Facts) -> bool {
    let wanted = &client["service"];
    let port = wanted["port"].as_i64().unwrap_or(443);
    let offers = |service: &Value| {
        let ports = service.pointer("/spec/ports").and_then(Value::as_array);
        ports
            .into_iter()
            .flatten()
            .any(|offered| offered["port"].as_i64() == Some(port))
    };
    facts.of(SERVICES).iter().any(|service| {
        text(service, "/metadata/name") == text(wanted, "/name")
            && text(service, "/metadata/namespace") == text(wanted, "/namespace")
            && offers(service)
    })
}

/// Whether a definition knows fields, in the version that this build uses, that this build does not.
pub fn is_newer(ours: &Value, found: &Value) -> bool {
    let ours = &ours["spec"]["versions"][0];
    let mut versions = list(found, "/spec/versions").iter();
    let found = versions.find(|version| version["name"] == ours["name"]);
    found.is_some_and(|found| !fields(found).is_subset(&fields(ours)))
}

/// Every field that the schema of a version knows, as a path.
fn fields(version: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    collect(&version["schema"]["openAPIV3Schema"], "", &mut found);
    found
}

fn collect(schema: &Value, path: &str, found: &mut BTreeSet<String>) {
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        collect(inner, &path, found);
        found.insert(path);
    }
    for inner in [&schema["items"], &schema["additionalProperties"]] {
        if inner.is_object() {
            collect(inner, path, found);
        }
    }
}

fn some(fields: &[&String]) -> String {
    let shown: Vec<&str> = fields.iter().take(SHOWN).map(|field| field.as_str()).collect();
    match fields.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Kinds before 0.33, which nobody looks at unless asked to.
pub fn older_generation(facts: &Facts) -> Vec<Finding> {
    let check = "older-generation";
    let found = facts.of(DEFINITIONS).iter().map(|found| text(found, "/metadata/name"));
    let found: Vec<&str> = found.filter(|name| OLDER.contains(name)).collect();
    match facts.follows_older_kinds() {
        _ if found.is_empty() => {}
        Ok(true) => return vec![Finding::ok(check, format!("{} are followed", found.join(", ")))],
        Ok(false) => {}
        Err(why) => {
            let what = format!("whether {} are followed is not known: {why}", found.join(", "));
            return vec![Finding::unknown(check, what)];
        }
    }
    let findings = found.iter().map(|name| {
        Finding::warning(check, "belongs to releases before 0.33; its objects have no effect without legacy.enabled")
            .about(*name)
            .fix(format!("kubectl get {name} -o yaml | karpenter convert -f - shows them as v1; delete the definition when all are replaced"))
    });
    or_ok(findings.collect(), check, "no kinds of releases before 0.33")
}

/// Webhooks of releases up to 1.0 whose service is gone keep every write from happening.
pub fn left_webhooks(facts: &Facts) -> Vec<Finding> {
    let check = "webhooks";
    let kinds = [VALIDATING, MUTATING];
    if let Some(why) = kinds.iter().find_map(|kind| facts.unread(*kind)) {
        return vec![Finding::unknown(check, format!("webhooks cannot be read: {why}"))];
    }
    let ours = kinds.iter().flat_map(|kind| facts.of(*kind)).filter(|webhooks| {
        let name = text(webhooks, "/metadata/name");
        let is_karpenters = name.ends_with("karpenter.sh") || name.ends_with("karpenter.k8s.aws");
        let asked = webhooks["webhooks"].as_array();
        let mut clients = asked.into_iter().flatten().map(|webhook| &webhook["clientConfig"]);
        let is_served = asked.is_some() && clients.all(|client| is_answered(client, facts));
        is_karpenters && !is_served
    });
    let findings = ours.map(|webhooks| {
        let (kind, name) = (text(webhooks, "/kind").to_lowercase(), text(webhooks, "/metadata/name"));
        Finding::problem(
            check,
            "is left from a release with webhooks and refuses writes that nobody answers",
        )
        .about(format!("{kind}/{name}"))
        .fix(format!("kubectl delete {kind} {name}"))
    });
    or_ok(findings.collect(), check, "none of Karpenter's are left")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::situation::{NOW, Situation, check},
        *,
    };
    use crate::{
        doctor::facts::{DEPLOYMENTS, LEASES},
        reader::Unread,
    };

    fn ours() -> Vec<Value> {
        let crds = api::crds::all(Variant::Aws);
        let values = crds.iter().map(|crd| serde_json::to_value(crd).expect("JSON"));
        values.collect()
    }

    /// One of our definitions after a change, the others as they are.
    fn changed(name: &str, change: impl Fn(&mut Value)) -> Situation {
        let mut crds = ours();
        for crd in crds.iter_mut().filter(|crd| text(crd, "/metadata/name") == name) {
            change(crd);
        }
        Situation::default().with(DEFINITIONS, crds)
    }

    #[test]
    fn definitions_of_this_build_are_fine() {
        check(
            definitions,
            changed("", |_| ()),
            "ok: all 5 kinds are served as this build knows them",
        );
    }

    #[test]
    fn the_node_classes_that_are_in_use_have_to_be_defined() {
        let of = |variant| {
            let crds = api::crds::all(variant);
            let values = crds.iter().map(|crd| serde_json::to_value(crd).expect("JSON"));
            values.collect::<Vec<_>>()
        };
        let pool = |group: &str| {
            json!({"kind": "NodePool", "metadata": {"name": "general"},
                "spec": {"template": {"spec": {"nodeClassRef": {"group": group}}}}})
        };
        let situation = |installed, groups: &[&str]| {
            let pools = groups.iter().map(|group| pool(group)).collect();
            Situation::default().with(DEFINITIONS, installed).with(POOLS, pools)
        };
        let (aws, kwok) = ("karpenter.k8s.aws", "karpenter.kwok.sh");
        let fine = "ok: all 5 kinds are served as this build knows them";
        let no_ec2 = "problem ec2nodeclasses.karpenter.k8s.aws: is not there";
        check(definitions, situation(of(Variant::Kwok), &[]), fine);
        check(definitions, situation(of(Variant::Kwok), &[kwok]), fine);
        check(definitions, situation(of(Variant::Kwok), &[aws]), no_ec2);
        check(definitions, situation(of(Variant::Aws), &[]), fine);
        check(
            definitions,
            situation(of(Variant::Aws), &[kwok]),
            "problem kwoknodeclasses.karpenter.kwok.sh: is not there",
        );
        check(definitions, situation(of(Variant::Core), &[]), no_ec2);
        check(definitions, situation(of(Variant::Core), &["example.com"]), no_ec2);
    }

    #[test]
    fn a_definition_that_is_not_as_it_should_be_is_told_apart_by_what_helps() {
        let pools = "nodepools.karpenter.sh";
        check(
            definitions,
            changed(pools, |crd| crd["metadata"]["name"] = json!("other")),
            "problem nodepools.karpenter.sh: is not there",
        );
        check(
            definitions,
            changed("nodeoverlays.karpenter.sh", |crd| {
                crd["metadata"]["name"] = json!("other");
            }),
            "warning nodeoverlays.karpenter.sh: is not there; its feature stays idle",
        );
        check(
            definitions,
            changed(pools, |crd| crd["spec"]["versions"][0]["name"] = json!("v1beta1")),
            "problem nodepools.karpenter.sh: version v1 is not served",
        );
        check(
            definitions,
            changed(pools, |crd| {
                crd["status"] = json!({"storedVersions": ["v1beta1", "v1"]});
            }),
            "warning nodepools.karpenter.sh: objects may still be stored as v1beta1",
        );
        check(
            definitions,
            changed(pools, |crd| {
                let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
                schema["properties"]["spec"]["properties"]
                    .as_object_mut()
                    .expect("fields")
                    .remove("replicas");
            }),
            "problem nodepools.karpenter.sh: is of an older release: it has no .spec.replicas",
        );
        check(
            definitions,
            changed(pools, |crd| {
                let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
                schema["properties"]["spec"]["properties"]["novelty"] = json!({"type": "string"});
            }),
            "warning nodepools.karpenter.sh: is of a newer release: this build does not act on .spec.novelty",
        );
        let webhook = json!({"strategy": "Webhook", "webhook": {"clientConfig": {"service":
            {"name": "karpenter", "namespace": "kube-system"}}}});
        check(
            definitions,
            changed(pools, |crd| crd["spec"]["conversion"] = webhook.clone()),
            "problem nodepools.karpenter.sh: asks the webhook kube-system/karpenter for conversions, which needs \
             legacy.webhooks.enabled",
        );
    }

    #[test]
    fn older_kinds_are_followed_where_the_controller_would() {
        let no_effect = "warning provisioners.karpenter.sh: belongs to releases before 0.33; its objects have no effect \
             without legacy.enabled";
        let followed = "ok: provisioners.karpenter.sh are followed";
        let unknown = "unknown: whether provisioners.karpenter.sh are followed is not known: ";
        let refused = || Err(Unread::Forbidden("ask".to_owned()));
        let served = |served: bool| {
            json!({"kind": "CustomResourceDefinition", "metadata": {"name": "provisioners.karpenter.sh"},
                "spec": {"versions": [{"name": "v1alpha5", "served": served}]}})
        };
        let of = |env: Value, lists_provisioners| {
            let deployment = json!({"kind": "Deployment", "metadata": {"labels": {"app.kubernetes.io/name": "karpenter"}},
                "spec": {"template": {"spec": {"containers": [{"env": env}]}}}});
            let situation = Situation {
                lists_provisioners,
                ..Situation::default()
            };
            let situation = situation.with(DEFINITIONS, vec![served(true)]);
            situation.with(DEPLOYMENTS, vec![deployment])
        };
        let set = |word: &str| json!([{"name": "LEGACY_APIS", "value": word}]);
        for (env, lists_provisioners, expected) in [
            (set("true"), refused(), followed),
            (set("false"), Ok(true), no_effect),
            (set("maybe"), Ok(true), no_effect),
            (set("auto"), Ok(true), followed),
            (set(""), Ok(true), followed),
            (json!([]), Ok(true), followed),
            (json!([]), Ok(false), no_effect),
        ] {
            check(older_generation, of(env, lists_provisioners), expected);
        }
        check(
            older_generation,
            of(set("auto"), refused()),
            &format!(
                "{unknown}the API server does not say whether the controller may list provisioners: not allowed: ask"
            ),
        );
        let unserved = of(set("auto"), Ok(true)).with(DEFINITIONS, vec![served(false)]);
        check(older_generation, unserved, no_effect);

        let definitions = || Situation::default().with(DEFINITIONS, vec![served(true)]);
        check(older_generation, definitions(), no_effect);
        let lease = json!({"spec": {"holderIdentity": "a", "renewTime": NOW}});
        check(
            older_generation,
            definitions().with(LEASES, vec![lease]),
            &format!("{unknown}the controller runs outside of the cluster"),
        );
        check(
            older_generation,
            definitions().without(DEPLOYMENTS, Unread::Forbidden("no".to_owned())),
            &format!("{unknown}deployments cannot be read: not allowed: no"),
        );
    }

    #[test]
    fn webhooks_that_nobody_serves_are_named() {
        let webhook =
            json!({"kind": "ValidatingWebhookConfiguration", "metadata": {"name": "validation.webhook.karpenter.sh"}});
        check(
            left_webhooks,
            Situation::default().with(VALIDATING, vec![webhook]),
            "problem validatingwebhookconfiguration/validation.webhook.karpenter.sh: is left from a release with \
             webhooks and refuses writes that nobody answers",
        );
        let asks = json!({"kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "validation.webhook.karpenter.sh"},
            "webhooks": [{"clientConfig": {"service": {"name": "karpenter", "namespace": "kube-system", "port": 8443}}}]});
        let service = |port: u16| {
            json!({"kind": "Service", "metadata": {"name": "karpenter", "namespace": "kube-system"},
                "spec": {"ports": [{"port": 8080}, {"port": port}]}})
        };
        let situation = |port: u16| {
            Situation::default()
                .with(VALIDATING, vec![asks.clone()])
                .with(SERVICES, vec![service(port)])
        };
        check(left_webhooks, situation(8443), "ok: none of Karpenter's are left");
        check(
            left_webhooks,
            situation(443),
            "problem validatingwebhookconfiguration/validation.webhook.karpenter.sh: is left from a release with \
             webhooks and refuses writes that nobody answers",
        );
        check(left_webhooks, Situation::default(), "ok: none of Karpenter's are left");
    }
}
