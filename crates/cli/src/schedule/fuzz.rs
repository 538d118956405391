//! Whatever is in the files: an error or a plan, never a panic and never a hang.
//!
//! Arbitrary text hardly ever gets past the first bracket, so most of the inputs are valid documents with a few fields
//! bent: dropped, doubled, moved elsewhere, or replaced by something odd.

mod sample;

use std::sync::Arc;

use jiff::Timestamp;
use proptest::prelude::*;
use provider_sim::Catalog;
use scheduler::{Options, audit, solve};
use serde_json::{Value, json};

use super::{report::Report, round, table};
use crate::input;

/// Reads both texts and plans, as the command does.
fn plan(objects: &str, types: &str) {
    let Ok(catalog) = Catalog::parse("types.json", types) else {
        return;
    };
    let Ok(mut cluster) = input::cluster_of_text(objects, Arc::new(catalog.vocabulary())) else {
        return;
    };
    input::offer(&mut cluster, &catalog);
    crate::question::apply_overlays(&mut cluster);
    let mut round = round::round(&cluster, &[], None, Timestamp::UNIX_EPOCH);
    round.options = Options {
        ignore_dra: false,
        ..Options::default()
    };
    let plan = solve(&cluster.snapshot, &round);
    let broken = audit(&cluster.snapshot, &plan);
    assert_eq!(broken, Ok(()), "{plan}");
    let report = Report::new(&cluster.snapshot, &plan, 0.0);
    table::wide(&cluster.snapshot, &plan, &report, true);
}

/// One way to bend a document. Numbers choose among what there is.
#[derive(Clone, Debug)]
enum Bend {
    Drop(usize),
    Replace(usize, Value),
    /// The second place gets what is at the first.
    Copy(usize, usize),
    /// An element of a list once more.
    Double(usize),
}

fn bends() -> impl Strategy<Value = Vec<Bend>> {
    let place = any::<usize>();
    let bend = prop_oneof![
        place.prop_map(Bend::Drop),
        (place, odd()).prop_map(|(place, value)| Bend::Replace(place, value)),
        (place, place).prop_map(|(from, to)| Bend::Copy(from, to)),
        place.prop_map(Bend::Double),
    ];
    prop::collection::vec(bend, 1..6)
}

/// Values that are seldom meant.
fn odd() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        Just(json!([])),
        Just(json!({})),
        Just(json!(true)),
        Just(json!("")),
        prop::sample::select(vec![
            "-1",
            "0",
            "1e30",
            "9223372036854775808",
            "1n",
            "-5Gi",
            "NaN",
            "1Ei",
            "0.0000000001",
            "In",
            "Exists",
            "DoesNotExist",
            "NotIn",
            "Gt",
            "Lt",
            "default",
            "kubernetes.io/hostname",
            "topology.kubernetes.io/zone",
            "karpenter.sh/nodepool",
            "DoNotSchedule",
            "ScheduleAnyway",
            "Honor",
            "Ignore",
            "*",
            "a/b/c",
            "-",
            "\u{1f980}",
            "2026-01-01T00:00:00Z",
            "1h",
            "-1h",
        ])
        .prop_map(|text| json!(text)),
        prop::sample::select(vec![i64::MIN, -1, 0, 1, 2, 65_536, i64::from(i32::MAX), i64::MAX,])
            .prop_map(|number| json!(number)),
        prop::sample::select(vec![-0.5, 1e-300, 1e300]).prop_map(|number| json!(number)),
        ".{0,12}".prop_map(|text| json!(text)),
    ]
}

/// The places of a document, from the root downwards.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(fields) => {
            for (key, inner) in fields {
                let key = key.replace('~', "~0").replace('/', "~1");
                places(inner, &format!("{at}/{key}"), found);
            }
        }
        Value::Array(elements) => {
            for (index, inner) in elements.iter().enumerate() {
                places(inner, &format!("{at}/{index}"), found);
            }
        }
        _ => {}
    }
}

fn bent(mut document: Value, bends: &[Bend]) -> Value {
    for bend in bends {
        let mut all = Vec::new();
        places(&document, "", &mut all);
        let at = |number: &usize| all[number % all.len()].as_str();
        match bend {
            Bend::Drop(place) => remove(&mut document, at(place)),
            Bend::Replace(place, value) => put(&mut document, at(place), value.clone()),
            Bend::Copy(from, to) => {
                let value = document.pointer(at(from)).cloned().unwrap_or_default();
                put(&mut document, at(to), value);
            }
            Bend::Double(place) => {
                if let Some(list) = document.pointer_mut(at(place)).and_then(Value::as_array_mut) {
                    list.extend(list.last().cloned());
                }
            }
        }
    }
    document
}

fn put(document: &mut Value, at: &str, value: Value) {
    if let Some(place) = document.pointer_mut(at) {
        *place = value;
    }
}

fn remove(document: &mut Value, at: &str) {
    let Some((parent, last)) = at.rsplit_once('/') else {
        return;
    };
    match document.pointer_mut(parent) {
        Some(Value::Object(fields)) => {
            fields.remove(&last.replace("~1", "/").replace("~0", "~"));
        }
        Some(Value::Array(elements)) => {
            if let Ok(index) = last.parse() {
                let _: Value = elements.remove(index);
            }
        }
        _ => {}
    }
}

/// The same objects as one list in JSON, or as documents in YAML.
fn written(objects: &[Value], yaml: bool) -> String {
    if yaml {
        let documents = objects.iter().filter_map(|object| serde_saphyr::to_string(object).ok());
        documents.collect::<Vec<_>>().join("\n---\n")
    } else {
        json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()
    }
}

#[test]
fn the_samples_are_good() {
    let (objects, types) = (written(&sample::objects(), false), sample::types().to_string());
    let catalog = Catalog::parse("types.json", &types).expect("a catalog");
    let mut cluster = input::cluster_of_text(&objects, Arc::new(catalog.vocabulary())).expect("a cluster");
    input::offer(&mut cluster, &catalog);
    let round = round::round(&cluster, &[], None, Timestamp::UNIX_EPOCH);
    let plan = solve(&cluster.snapshot, &round);
    assert!(!plan.launches.is_empty() && !plan.placements.is_empty(), "{plan}");
    plan_both(&objects, &types);
}

fn plan_both(objects: &str, types: &str) {
    plan(objects, types);
    plan(&objects.replace("\"List\"", "\"PodList\""), types);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn bent_objects_give_an_error_or_a_plan(which in any::<prop::sample::Index>(), bends in bends(), yaml in any::<bool>()) {
        let mut objects = sample::objects();
        let index = which.index(objects.len());
        objects[index] = bent(objects[index].clone(), &bends);
        plan(&written(&objects, yaml), &sample::types().to_string());
    }

    #[test]
    fn a_bent_catalog_gives_an_error_or_a_plan(bends in bends()) {
        plan(&written(&sample::objects(), false), &bent(sample::types(), &bends).to_string());
    }

    #[test]
    fn torn_text_gives_an_error_or_a_plan(from in any::<prop::sample::Index>(), to in any::<prop::sample::Index>(), put in ".{0,3}", yaml in any::<bool>()) {
        let mut text: Vec<char> = written(&sample::objects(), yaml).chars().collect();
        let (from, to) = (from.index(text.len()), to.index(text.len()));
        // Mostly a few characters, sometimes all the rest.
        let until = if to % 4 == 0 { text.len() } else { (from + to % 8).min(text.len()) };
        text.splice(from..until, put.chars());
        plan(&text.iter().collect::<String>(), &sample::types().to_string());
        let mut types: Vec<char> = sample::types().to_string().chars().collect();
        let (from, until) = (from.min(types.len()), until.min(types.len()));
        types.splice(from..until, put.chars());
        plan(&written(&sample::objects(), yaml), &types.iter().collect::<String>());
    }

    #[test]
    fn arbitrary_bytes_give_an_error_or_a_plan(bytes in prop::collection::vec(any::<u8>(), 0..300), text in "[-{}\\[\\]:,\"'a-z#&*!|>\\n ]{0,200}") {
        let types = sample::types().to_string();
        for text in [&*String::from_utf8_lossy(&bytes), &text] {
            plan(text, &types);
            plan("", text);
        }
    }
}
