use std::collections::BTreeMap;

use model::dra::{AttributeValue, Device, DeviceCapacity};

use super::Condition;

fn device() -> Device {
    let text = |text: &str| AttributeValue::Text(text.into());
    let capacity = |amount: &str| DeviceCapacity {
        value: amount.parse().unwrap(),
        policy: None,
    };
    Device {
        attributes: BTreeMap::from([
            ("model".into(), text("A100-SXM")),
            ("cores".into(), AttributeValue::Int(108)),
            ("mig".into(), AttributeValue::Bool(true)),
            ("driverVersion".into(), AttributeValue::Version("1.12.3".into())),
            ("other.example.com/rack".into(), text("r7")),
        ]),
        capacity: BTreeMap::from([
            ("memory".into(), capacity("40Gi")),
            ("bandwidth".into(), capacity("1500m")),
        ]),
        shareable: true,
        ..Device::named("gpu-0")
    }
}

const GPU: &str = "gpu.example.com";

#[track_caller]
fn check(expression: &str, expected: bool) {
    let condition = Condition::read(expression).unwrap();
    assert_eq!(condition.holds(GPU, &device()), expected, "{expression}");
}

#[test]
fn a_device_shows_its_driver_attributes_and_capacity() {
    check("device.driver == 'gpu.example.com'", true);
    check("device.driver == 'nic.example.com'", false);
    check("device.allowMultipleAllocations", true);
    check("device.attributes['gpu.example.com'].model == 'A100-SXM'", true);
    check("device.attributes['gpu.example.com'].cores >= 100", true);
    check("device.attributes['gpu.example.com'].mig && !false", true);
    check("device.attributes['other.example.com'].rack == 'r7'", true);
    check("device.attributes['gpu.example.com'].rack == 'r7'", false);
    check("device.attributes['gpu.example.com'].cores in [54, 108]", true);
}

#[test]
fn strings_can_be_taken_apart() {
    let model = "device.attributes['gpu.example.com'].model";
    for condition in [
        ".startsWith('A100')",
        ".endsWith('SXM')",
        ".contains('00-S')",
        ".matches('^A[0-9]+-')",
        ".lowerAscii() == 'a100-sxm'",
        ".split('-')[1] == 'SXM'",
        ".substring(0, 4) == 'A100'",
        ".replace('-', '') == 'A100SXM'",
        ".size() == 8",
        ".find('[0-9]+') == '100'",
    ] {
        check(&format!("{model}{condition}"), true);
    }
}

#[test]
fn quantities_are_compared_and_added() {
    let memory = "device.capacity['gpu.example.com'].memory";
    for condition in [
        ".compareTo(quantity('40Gi')) == 0",
        ".compareTo(quantity('41Gi')) == -1",
        ".isGreaterThan(quantity('39Gi'))",
        ".isLessThan(quantity('43G'))",
        ".asInteger() == 42949672960",
        ".isInteger()",
        ".add(quantity('2Gi')).compareTo(quantity('42Gi')) == 0",
        ".sub(1024).isLessThan(quantity('40Gi'))",
        ".sign() == 1",
        ".asApproximateFloat() > 1.0",
        " == quantity('40Gi')",
    ] {
        check(&format!("{memory}{condition}"), true);
    }
    check("device.capacity['gpu.example.com'].bandwidth.isInteger()", false);
    check("device.capacity['gpu.example.com'].bandwidth.asInteger() == 1", false);
    check("isQuantity('5Gi') && !isQuantity('five')", true);
    check("quantity('9e999').isGreaterThan(quantity('1n'))", true);
}

#[test]
fn versions_are_compared_by_their_parts() {
    let version = "device.attributes['gpu.example.com'].driverVersion";
    for condition in [
        ".isGreaterThan(semver('1.9.0'))",
        ".isLessThan(semver('2.0.0-rc.1'))",
        ".compareTo(semver('1.12.3')) == 0",
        ".major() == 1",
        ".minor() == 12",
        ".patch() == 3",
        " == semver('1.12.3')",
        ".compareTo(semver('v1.12.03', true)) == 0",
        ".isGreaterThan(semver('1.12', true))",
    ] {
        check(&format!("{version}{condition}"), true);
    }
    check("isSemver('1.0.0') && !isSemver('v1.0.0') && isSemver('v1', true)", true);
}

#[test]
fn a_domain_that_a_device_lacks_is_empty() {
    check("has(device.attributes['gpu.example.com'].model)", true);
    check("has(device.attributes['nic.example.com'].model)", false);
    check("!has(device.attributes['nic.example.com'].model)", true);
    check(
        "!('nic.example.com' in device.attributes) || device.attributes['nic.example.com'].fast",
        true,
    );
    check("device.attributes['nic.example.com'].model == 'x'", false);
}

#[test]
fn a_part_can_be_given_a_name() {
    check(
        "cel.bind(gpu, device.attributes['gpu.example.com'], gpu.mig && gpu.cores > 100)",
        true,
    );
    check(
        "['H100', 'A100'].exists(kind, device.attributes['gpu.example.com'].model.startsWith(kind))",
        true,
    );
}

#[test]
fn what_fails_on_a_device_does_not_match_it() {
    for failing in [
        "device.attributes['gpu.example.com'].missing == 1",
        "device.attributes['gpu.example.com'].cores.startsWith('1')",
        "device.attributes['gpu.example.com'].cores / 0 == 1",
        "nothing",
        "device.attributes['gpu.example.com'].cores",
        "quantity('much').isInteger()",
    ] {
        check(failing, false);
    }
    let unversioned = Device {
        attributes: BTreeMap::from([("v".into(), AttributeValue::Version("one".into()))]),
        ..Device::named("odd")
    };
    let always = Condition::read("true").unwrap();
    assert!(!always.holds(GPU, &unversioned));
}

#[test]
fn one_side_settles_and_and_or_even_where_the_other_fails() {
    let missing = "device.attributes['gpu.example.com'].missing";
    check(&format!("{missing} || true"), true);
    check(&format!("true || {missing}"), true);
    check(&format!("!({missing} && false)"), true);
    check(&format!("{missing} || false"), false);
    check(&format!("[1, 2].exists(n, n == 2 || {missing})"), true);
    check(&format!("!([1, 2].all(n, n == 2 && {missing}))"), true);
}

#[test]
fn operators_bind_as_in_other_languages() {
    for expression in [
        "1 + 2 * 3 == 7 && (1 + 2) * 3 == 9",
        "10 - 4 - 3 == 3 && 7 / 2 == 3 && 7 % 2 == 1 && -(-3) == 3",
        "1 < 2 == true",
        "!false && !!true",
        "true ? (false ? 1 == 2 : true) : false",
        "false ? 1 == 2 : false ? 1 == 2 : true",
        "1 == 1.0 && 1u == 1 && 'a' != 1 && [1, 2] == [1, 2] && {'a': 1} == {'a': 1u}",
        "'a' + 'b' == 'ab' && [1] + [2] == [1, 2]",
        "0x1F == 31 && 1e3 == 1000.0 && .5 < 1.0",
        r#""a\n\x41\u00e9\101" == 'a\nAéA' && r'\d' == '\\d' && '''it's''' == "it's""#,
        "// a remark\n true // another",
        "{1: 'a', 'x': true}[1] == 'a' && 'x' in {'x': 1} && [3, 4][1] == 4",
    ] {
        check(expression, true);
    }
    for failing in [
        "9223372036854775807 + 1 > 0",
        "[1][1] == 1",
        "[1][-1] == 1",
        "1 < 'a'",
        "5 / 0 == 0",
    ] {
        check(failing, false);
    }
}

#[test]
fn lists_are_asked_sorted_and_joined() {
    for expression in [
        "[1, 2, 3].all(n, n > 0) && [1, 2].exists_one(n, n == 2) && ![2, 2].exists_one(n, n == 2)",
        "[1, 2, 3].filter(n, n > 1) == [2, 3] && [1, 2].map(n, n * 2) == [2, 4]",
        "[1, 2, 3].map(n, n > 1, n * 2) == [4, 6]",
        "[1, 2].isSorted() && [3, 1].max() == 3 && [3, 1].min() == 1 && [1, 2].sum() == 3",
        "['a', 'b'].join('-') == 'a-b' && 'a-b'.split('-') == ['a', 'b'] && 'abc'.split('') == ['a', 'b', 'c']",
        "'a,b,c'.split(',', 2) == ['a', 'b,c'] && 'abcabc'.indexOf('c', 3) == 5 && 'abcabc'.lastIndexOf('a') == 3",
        "sets.contains([1, 2], [2]) && sets.intersects([1], [1, 2]) && sets.equivalent([1, 1], [1])",
        "size([1, 2]) == 2 && {'a': 1}.size() == 1 && {'b': 1, 'a': 2}.map(k, k) == ['a', 'b']",
        "int('7') == 7 && string(7) == '7' && double('1.5') == 1.5 && uint(3) == 3u && int(2.9) == 2",
        "device.attributes['gpu.example.com'].?missing.orValue(3) == 3",
        "device.attributes['gpu.example.com'][?'cores'].hasValue()",
        "!optional.none().hasValue() && optional.of(1).value() == 1",
    ] {
        check(expression, true);
    }
}

#[test]
fn what_cannot_be_read_is_refused_with_a_reason() {
    for (expression, complaint) in [
        ("device.driver ==".to_owned(), "ends where a value is missing"),
        ("device.driver == 'a' 'b'".to_owned(), "after the end"),
        ("(true".to_owned(), "\")\" is missing"),
        ("'open".to_owned(), "does not end"),
        ("true # no".to_owned(), "means nothing"),
        ("99999999999999999999 > 1".to_owned(), "is not a number"),
        ("frobnicate(device)".to_owned(), "function frobnicate does not exist"),
        (
            "device.driver.contains('a', 'b')".to_owned(),
            "function contains does not exist, or not with 2",
        ),
        ("Device{driver: 'x'} == device".to_owned(), "after the end"),
        ("has(device)".to_owned(), "takes one selection"),
        ("[1].all(1, true)".to_owned(), "takes a name first"),
        ("'x' == '".to_owned() + &"y".repeat(10 * 1024) + "'", "more than 10240"),
        (
            format!("{}1{} == 1", "(".repeat(200), ")".repeat(200)),
            "nested more than",
        ),
        ("1".to_owned() + &"+1".repeat(2000) + " == 2001", "nested more than"),
        ("!".repeat(3000) + "true", "nested more than"),
        ("device".to_owned() + &".a".repeat(500), "nested more than"),
        ("true ? 1 : ".repeat(500) + "2", "nested more than"),
    ] {
        let refused = Condition::read(&expression).expect_err(&expression);
        assert!(refused.contains(complaint), "{refused}");
    }
}

#[test]
fn what_is_read_can_be_evaluated_on_a_small_stack() {
    let deep = [
        "1".to_owned() + &"+1".repeat(90) + " == 91",
        "!".repeat(90) + "true",
        format!("{}1{} == 1", "(".repeat(30), ")".repeat(30)),
        vec!["true"; 1500].join("&&"),
        format!("device.driver in [{} 'gpu.example.com']", "'x',".repeat(2000)),
    ];
    let thread = std::thread::Builder::new().stack_size(512 * 1024);
    let checked = thread.spawn(move || deep.iter().for_each(|expression| check(expression, true)));
    checked.unwrap().join().unwrap();
}

#[test]
fn an_expression_that_takes_too_long_does_not_match() {
    let thousand = format!("[{}]", "1,".repeat(1000));
    check(&format!("{thousand}.all(a, {thousand}.all(b, a == b))"), false);
    check("'x'.replace('', 'yy').size() == 5", true);
}

proptest::proptest! {
    /// Whatever is written, reading and asking come to an end without a panic.
    #[test]
    fn no_text_is_too_odd(text in "[a-z0-9é .,:?!()\\[\\]{}'\"\\\\+*/%<>=&|-]{0,40}") {
        if let Ok(condition) = Condition::read(&text) {
            condition.holds(GPU, &device());
        }
    }
}
