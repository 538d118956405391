use std::time::Duration;

use clock::VirtualClock;
use jiff::Timestamp;

use super::*;
use crate::testing::samples;

fn variables() -> Variables {
    Variables::of(&samples::m5_large(), 29).unwrap()
}

#[track_caller]
fn value(text: &str) -> Result<i64, NoValue> {
    Formula::read(text).unwrap().value(&variables())
}

/// AW24.7.1
#[test]
fn the_greater_and_the_smaller_of_two_numbers_are_told() {
    for (text, expected) in [
        ("max(2, 3)", 3),
        ("min(2, 3)", 2),
        ("max(2.9, 1.5)", 2),
        ("min(2.9, 1.5)", 1),
        ("max(vcpus, 3.7)", 3),
        ("min(3.7, vcpus)", 2),
        ("max(0.5, vcpus)", 2),
        ("double(vcpus) * 1.75", 3),
        ("0.0 - 1.75", -1),
    ] {
        assert_eq!(value(text), Ok(expected), "{text}");
    }
}

/// AW24.7.2
#[test]
fn an_instance_type_shows_its_cores_memory_interfaces_and_name() {
    for (text, expected) in [
        ("default_enis * (ips_per_eni - 1) + 2", 29),
        ("min(max_pods, 110)", 29),
        ("min(max_pods, 10)", 10),
        ("vcpus * 1000 + memory_mib", 10_192),
        ("instance_type == 'm5.large' ? 20 : 110", 20),
        ("instance_type.startsWith('t3.') ? 20 : 110", 110),
        ("instance_type.endsWith('.metal') || vcpus < 2 ? 250 : 58", 58),
        ("{'m5.large': 12}[instance_type]", 12),
    ] {
        assert_eq!(value(text), Ok(expected), "{text}");
    }
}

/// AW24.7.3
#[test]
fn what_has_no_value_fails_and_what_is_negative_is_told() {
    for text in [
        "vcpus / 0",
        "vcpus % (vcpus - 2)",
        "9223372036854775807 + vcpus",
        "memory_mib * 9223372036854775807",
        "{'a': 1}[instance_type]",
        "int(instance_type)",
        "double(vcpus) * 1e300 * 1.0",
    ] {
        assert_eq!(value(text), Err(NoValue::Fails), "{text}");
    }
    for text in ["1.0 / 0.0", "double(vcpus) / (0.0 * 1.0)", "0.0 / 0.0", "1e308 * 10.0"] {
        assert_eq!(value(text), Err(NoValue::NotFinite), "{text}");
    }
    assert_eq!(value("vcpus - 100"), Ok(-98));
}

/// AW24.7.4
#[test]
fn the_largest_machine_is_not_too_large() {
    let mut largest = samples::plain("u-24tb1.112xlarge", 448, 24 * 1024 * 1024, 15, 50);
    largest.network.cards[0].max_interfaces = 15;
    let variables = Variables::of(&largest, 737).unwrap();
    let value = |text: &str| Formula::read(text).unwrap().value(&variables);
    assert_eq!(value("memory_mib * 1024 * 1024"), Ok(24 << 40));
    assert_eq!(value("vcpus * memory_mib"), Ok(448 * 24 * 1024 * 1024));
    assert_eq!(
        value("255 + 11 * max_pods + memory_mib / 100"),
        Ok(255 + 11 * 737 + 251_658)
    );
}

/// AW24.7.6
#[test]
fn a_type_without_a_default_card_has_no_variables() {
    let mut odd = samples::m5_large();
    odd.network.default_card = 7;
    assert_eq!(Variables::of(&odd, 10).unwrap_err(), NoDefaultCard);
}

/// AW24.7.8
#[test]
fn what_yields_no_number_is_refused_when_it_is_read() {
    for (text, complaint) in [
        ("", "a value is missing"),
        ("  ", "a value is missing"),
        ("vcpus *", "a value is missing"),
        ("cpus * 2", "\"cpus\" is not known"),
        ("'ten'", "it yields string"),
        ("instance_type", "it yields string"),
        ("vcpus > 2", "it yields bool"),
        ("[vcpus]", "it yields list(int)"),
        ("dyn(vcpus)", "it yields dyn"),
        ("3u", "it yields uint"),
        ("vcpus * 10m", "comes after the end"),
        (
            "vcpus * 0.1",
            "no operator takes int on one side and double on the other",
        ),
    ] {
        let refused = Formula::read(text).expect_err(text).to_string();
        assert!(refused.contains(complaint), "{text}: {refused}");
    }
}

/// AW24.7.8
#[test]
fn formulas_can_be_evaluated_by_many_at_once() {
    let clock = Arc::new(VirtualClock::starting_at(Timestamp::UNIX_EPOCH));
    let formulas = Formulas::new(clock, true);
    let all: Vec<i64> = (0..200).collect();
    std::thread::scope(|scope| {
        let one = |pods: &i64| {
            let (formulas, pods) = (&formulas, *pods);
            scope.spawn(move || {
                let variables = Variables::of(&samples::m5_large(), pods).unwrap();
                formulas.of("max_pods * 2 + vcpus").unwrap().value(&variables)
            })
        };
        let running: Vec<_> = all.iter().map(one).collect();
        for (pods, thread) in all.iter().zip(running) {
            assert_eq!(thread.join().unwrap(), Ok(pods * 2 + 2));
        }
    });
}

#[tokio::test(start_paused = true)]
async fn a_formula_is_read_once_for_as_long_as_it_is_used() {
    let clock = Arc::new(VirtualClock::starting_at(Timestamp::UNIX_EPOCH));
    let formulas = Formulas::new(clock, true);
    let first = formulas.of("vcpus").unwrap();
    for _ in 0..3 {
        tokio::time::advance(Duration::from_secs(11 * 60 * 60)).await;
        assert!(Arc::ptr_eq(&first, &formulas.of("vcpus").unwrap()), "it is in use");
    }
    tokio::time::advance(Duration::from_secs(13 * 60 * 60)).await;
    assert!(!Arc::ptr_eq(&first, &formulas.of("vcpus").unwrap()), "nobody used it");
    assert!(formulas.of("cpus").is_err() && formulas.of("cpus").is_err());
}
