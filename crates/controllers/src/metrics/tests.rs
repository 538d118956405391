//! What is exported, against what upstream exports.

use std::collections::{BTreeMap, BTreeSet};

use super::{DEFAULT_BUCKETS, DURATIONS, specimen::specimen};

/// One family of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Exported {
    kind: String,
    labels: BTreeSet<String>,
    bounds: Vec<String>,
}

/// Labels that belong to the form of a sample, not to its family.
const FORM: [&str; 2] = ["le", "quantile"];

fn exported(page: &str) -> BTreeMap<String, Exported> {
    let mut families: BTreeMap<String, Exported> = BTreeMap::new();
    let mut current = String::new();
    for line in page.lines() {
        if let Some(head) = line.strip_prefix("# TYPE ") {
            let (name, kind) = head.split_once(' ').expect("a name and a type");
            current = name.to_owned();
            let family = Exported {
                kind: kind.to_owned(),
                ..Exported::default()
            };
            assert!(
                families.insert(current.clone(), family).is_none(),
                "{name} is there twice"
            );
        } else if !line.starts_with('#') {
            let family = families.get_mut(&current).expect("a sample follows its head");
            assert!(line.starts_with(&current), "{line} is not of {current}");
            for (key, value) in labels(line) {
                if key == "le" && value != "+Inf" {
                    let bound = value.parse::<f64>().expect("a bound is a number").to_string();
                    if !family.bounds.contains(&bound) {
                        family.bounds.push(bound);
                    }
                }
                if !FORM.contains(&&*key) {
                    family.labels.insert(key);
                }
            }
        }
    }
    families
}

fn labels(sample: &str) -> Vec<(String, String)> {
    let Some((_, rest)) = sample.split_once('{') else {
        return Vec::new();
    };
    let (inside, _) = rest.rsplit_once('}').expect("a brace that was opened is closed");
    let pairs = inside.split("\",").filter_map(|pair| pair.split_once("=\""));
    pairs
        .map(|(key, value)| (key.to_owned(), value.trim_end_matches('"').to_owned()))
        .collect()
}

/// The table that was written off the specification. Words in capitals stand for lists.
fn expected() -> BTreeMap<String, Exported> {
    let node = "nodepool,capacity_type,zone,region,instance_type,arch,os,windows_build,node_name,phase,managed";
    let text = |bounds: &[f64]| bounds.iter().map(f64::to_string).collect::<Vec<_>>();
    let conditions: Vec<f64> = (0..15).map(|n| 0.5 * f64::from(1 << n)).collect();
    let queues: Vec<f64> = vec![1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0];
    let runs: Vec<f64> = DURATIONS.iter().copied().filter(|bound| *bound <= 60.0).collect();
    let table = include_str!("upstream.tsv").lines().map(|line| {
        let cells: Vec<&str> = line.split('\t').collect();
        let [name, kind, labels, bounds] = cells[..] else {
            panic!("{line:?} has not four cells");
        };
        let labels = labels
            .replace("NODE", node)
            .replace("CLASS", "karpenter_kwok_sh_kwoknodeclass");
        let bounds = match bounds {
            "DURATIONS" => text(DURATIONS),
            "DEFAULT" => text(DEFAULT_BUCKETS),
            "CONDITIONS" => text(&conditions),
            "QUEUES" => text(&queues),
            "RUNS" => text(&runs),
            numbers => numbers.split_whitespace().map(str::to_owned).collect(),
        };
        let family = Exported {
            kind: kind.to_owned(),
            labels: labels
                .split(',')
                .filter(|label| !label.is_empty())
                .map(str::to_owned)
                .collect(),
            bounds,
        };
        (name.to_owned(), family)
    });
    table.collect()
}

/// Families that upstream does not have, or has for its own node class.
fn is_ours(name: &str) -> bool {
    name == "karpenter_scheduler_audit_dropped_pods_total"
        || name == "karpenter_voluntary_disruption_staying_nodes"
        || name.starts_with("operator_capacitybuffer_")
        || name.starts_with("operator_kwoknodeclass_")
}

/// LC-M4, LC-M5, LC-M6: every family under its name, with its type, labels and buckets.
#[test]
fn every_family_is_exported_as_upstream_exports_it() {
    let page = specimen();
    let mut exported = exported(&page);
    exported.retain(|name, _| !is_ours(name));
    let expected = expected();
    let missing: Vec<_> = expected.keys().filter(|name| !exported.contains_key(*name)).collect();
    assert!(missing.is_empty(), "missing: {missing:#?}");
    let unknown: Vec<_> = exported.keys().filter(|name| !expected.contains_key(*name)).collect();
    assert!(unknown.is_empty(), "not in the table: {unknown:#?}");
    for (name, family) in &expected {
        assert_eq!(&exported[name], family, "{name}");
    }
}

#[test]
fn samples_say_what_happened() {
    let page = specimen();
    for line in [
        r#"karpenter_nodeclaims_created_total{reason="provisioned",nodepool="general",min_values_relaxed="false"} 1"#,
        r#"controller_runtime_reconcile_total{controller="provisioner",result="error"} 1"#,
        "karpenter_cluster_state_synced 1",
        r#"karpenter_nodepools_limit{resource_type="cpu",nodepool="general"} 10"#,
        r#"karpenter_nodepools_cost_total{nodepool="general"} 1"#,
        r#"karpenter_cluster_utilization_percent{resource_type="cpu"} 25"#,
    ] {
        assert!(page.lines().any(|found| found == line), "{line} is missing in\n{page}");
    }
    assert!(page.contains(
        r#"owner="/apis/apps/v1/namespaces/default/daemonsets/d",node="a",scheduled="true",nodepool="general""#
    ));
}

/// A gauge of what keeps nodes would otherwise tell of nodes that went long ago.
#[test]
fn what_kept_nodes_is_forgotten_by_the_next_pass() {
    let metrics = super::Metrics::default();
    let staying = |reason| BTreeMap::from([(("general".to_owned(), reason), 2)]);
    metrics.disruption.staying(staying("Budget"));
    metrics.disruption.staying(staying("NotCheaper"));
    let exposition = super::Exposition::of(&std::sync::Arc::new(metrics));
    let page = exposition.text(None, jiff::Timestamp::UNIX_EPOCH);
    let told: Vec<&str> = page.lines().filter(|line| line.contains("staying_nodes{")).collect();
    assert_eq!(
        told,
        [r#"karpenter_voluntary_disruption_staying_nodes{nodepool="general",reason="NotCheaper"} 2"#]
    );
}
