use std::{cell::Cell, sync::Arc};

use api::aws::AmiFamily;
use clock::VirtualClock;
use jiff::Timestamp;

use super::*;
use crate::{
    class_view,
    instance_type::{NoDefaultCard, Shape},
    testing::samples::{self, REGION},
};

fn formulas(allowed: bool) -> Formulas {
    let clock = Arc::new(VirtualClock::starting_at(Timestamp::UNIX_EPOCH));
    Formulas::new(clock, allowed)
}

fn map(entries: &[(&str, &str)]) -> Amounts {
    let entry = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
    entries.iter().map(entry).collect()
}

/// The amounts that m5.large gets, and what is refused.
fn resolved_amounts(entries: &[(&str, &str)]) -> (Amounts, Vec<String>) {
    let variables = || Variables::of(&samples::m5_large(), 29);
    let found = amounts(Some(&map(entries)), &formulas(true), variables).unwrap();
    let (mut kept, mut refused) = (Amounts::new(), Vec::new());
    for (name, amount) in found {
        match amount {
            Ok(amount) => {
                kept.insert(name, amount);
            }
            Err((text, _)) => refused.push(text),
        }
    }
    (kept, refused)
}

/// AW24.7.5
#[test]
fn amounts_are_rounded_up_in_the_units_of_their_resource() {
    let table = [
        ("cpu", "vcpus * 22 + 1", "50m"),
        ("cpu", "vcpus * 35", "70m"),
        ("cpu", "vcpus - 2", "0m"),
        ("cpu", "9223372036854775807 - vcpus", "9223372036854775810m"),
        ("memory", "15 + vcpus", "32Mi"),
        ("memory", "255 + 11 * max_pods", "576Mi"),
        ("memory", "vcpus * 0", "0Mi"),
        ("memory", "9223372036854775807 - vcpus", "9223372036854775808Mi"),
        ("ephemeral-storage", "vcpus + 1", "3Gi"),
        ("pid", "max_pods * 100", "2900"),
        ("cpu", "2.0 * 22.9", "50m"),
    ];
    for (name, text, expected) in table {
        assert_eq!(resolved_amounts(&[(name, text)]).0[name], expected, "{name}: {text}");
    }
    let quantities = [
        ("cpu", "45"),
        ("memory", "17Mi"),
        ("ephemeral-storage", "1.5Gi"),
        ("pid", "1k"),
    ];
    assert_eq!(
        resolved_amounts(&quantities).0,
        map(&quantities),
        "quantities stay as they are"
    );
}

/// AW24.7.6
#[test]
fn variables_are_gathered_once_and_only_for_expressions() {
    let built = Cell::new(0);
    let variables = || {
        built.set(built.get() + 1);
        Variables::of(&samples::m5_large(), 29)
    };
    let formulas = formulas(true);
    for written in [None, Some(map(&[])), Some(map(&[("cpu", "100m"), ("memory", "1Gi")]))] {
        amounts(written.as_ref(), &formulas, variables).unwrap();
        assert_eq!(built.get(), 0, "{written:?}");
    }
    let several = map(&[("cpu", "vcpus"), ("memory", "vcpus"), ("pid", "100")]);
    assert_eq!(amounts(Some(&several), &formulas, variables).unwrap().len(), 3);
    assert_eq!(built.get(), 1);
    let failing = || Err(NoDefaultCard);
    assert_eq!(amounts(Some(&several), &formulas, failing).unwrap_err(), NoDefaultCard);
}

/// AW24.7.3, AW24.7.7
#[test]
fn bad_amounts_are_left_out_and_good_ones_kept() {
    let (kept, refused) = resolved_amounts(&[
        ("cpu", "vcpus * 30"),
        ("ephemeral-storage", "1 / (vcpus - 2)"),
        ("memory", "100 - memory_mib"),
        ("pid", "much"),
    ]);
    assert_eq!(kept, map(&[("cpu", "60m")]));
    assert_eq!(refused, ["1 / (vcpus - 2)", "100 - memory_mib", "much"]);
}

fn shape(kubelet: KubeletConfiguration, allowed: bool) -> Result<Shape, Unreadable> {
    let mut class = samples::class();
    class.spec.ami_family = Some(AmiFamily::Bottlerocket);
    class.spec.kubelet = Some(kubelet);
    let zones = class_view::zones(&class);
    let setting = Setting {
        region: REGION,
        options: &samples::options(),
        formulas: &formulas(allowed),
        class: &class,
        zones: &zones,
        placement_group: None,
    };
    Shape::of(&samples::m5_large(), &[], &setting)
}

fn max_pods(text: &str) -> KubeletConfiguration {
    KubeletConfiguration {
        max_pods: Some(IntOrString::String(text.to_owned())),
        ..KubeletConfiguration::default()
    }
}

/// AW24.9.16
#[test]
fn the_number_of_pods_follows_its_expression_or_the_type_fails() {
    let pods = |text: &str, allowed: bool| {
        let shape = shape(max_pods(text), allowed)?;
        Ok::<_, Unreadable>(shape.capacity.get("pods").value_ceil())
    };
    assert_eq!(pods("max_pods * 2", true).unwrap(), 58);
    assert_eq!(pods("vcpus / 4", true).unwrap(), 0);
    for (text, complaint) in [
        ("vcpus - 10", "yields -8 for m5.large, which is no number of pods"),
        ("2147483646 + vcpus", "yields 2147483648 for m5.large"),
        ("10 / (vcpus - 2)", "has no value for m5.large"),
        ("many", "\"many\" is not known"),
    ] {
        let error = pods(text, true).unwrap_err().to_string();
        assert!(
            error.starts_with("spec.kubelet.maxPods: ") && error.contains(complaint),
            "{error}"
        );
        assert_eq!(pods(text, false).unwrap(), 29, "without the gate the default counts");
    }
}

/// AW24.9.16
#[test]
fn amounts_by_expression_are_set_aside_and_count_the_pods_that_there_are() {
    let kubelet = KubeletConfiguration {
        kube_reserved: Some(map(&[("memory", "255 + 11 * max_pods"), ("pid", "1000")])),
        system_reserved: Some(map(&[("cpu", "vcpus * 50"), ("memory", "0 - vcpus")])),
        ..max_pods("max_pods - 19")
    };
    let with = shape(kubelet.clone(), true).unwrap();
    assert_eq!(with.capacity.get("pods").value_ceil(), 10);
    assert_eq!(with.overhead.kube_reserved.get("memory").to_string(), "368Mi");
    assert_eq!(with.overhead.system_reserved.to_string(), "cpu=100m");
    assert_eq!(with.reserved.kube, map(&[("memory", "368Mi"), ("pid", "1000")]));
    assert_eq!(with.reserved.system, map(&[("cpu", "100m")]));
    let without = shape(kubelet, false).unwrap();
    assert_eq!(without.reserved.kube, map(&[("pid", "1000")]));
    assert_eq!(without.overhead.system_reserved.to_string(), "nothing");
    assert_eq!(without.overhead.kube_reserved.get("memory").to_string(), "574Mi");
}

#[test]
fn pods_per_core_bound_what_an_expression_allows() {
    let kubelet = KubeletConfiguration {
        pods_per_core: Some(4),
        kube_reserved: Some(map(&[("pid", "max_pods * 1")])),
        ..max_pods("100 + vcpus")
    };
    let mut class = samples::class();
    class.spec.kubelet = Some(kubelet);
    let zones = class_view::zones(&class);
    let setting = Setting {
        region: REGION,
        options: &samples::options(),
        formulas: &formulas(true),
        class: &class,
        zones: &zones,
        placement_group: None,
    };
    let resolved = resolved(&samples::m5_large(), &setting).unwrap();
    assert_eq!((resolved.pods, resolved.reserved.kube["pid"].as_str()), (8, "8"));
}
