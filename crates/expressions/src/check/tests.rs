use super::*;
use crate::{Expression, Functions};

const VARIABLES: [(&str, Type); 3] = [("cores", Type::Int), ("share", Type::Double), ("name", Type::Text)];

fn type_of(text: &str) -> Result<String, String> {
    let expression = Expression::read(text, Functions::Arithmetic)?;
    expression.type_over(&VARIABLES).map(|found| found.to_string())
}

#[test]
fn types_follow_the_operators() {
    for (text, expected) in [
        ("cores * 10 + 2", "int"),
        ("-cores % 3", "int"),
        ("share * 2.0", "double"),
        ("double(cores) * share", "double"),
        ("int(share)", "int"),
        ("name + '-x'", "string"),
        ("cores > 4 && name.startsWith('m5')", "bool"),
        ("cores > 1.5 || share == 2 || !(cores != 3)", "bool"),
        ("cores in [1, 2] || name in {'a': 1}", "bool"),
        ("name.matches('^m') ? cores : 0", "int"),
        ("[1, 2].map(n, n * 2)[0]", "int"),
        ("[1, 2].filter(n, n > 1).size()", "int"),
        ("{'m5': 10}[name]", "int"),
        ("{'m5': 10}.m5", "int"),
        ("has({'m5': 10}.m5)", "bool"),
        ("[cores].exists(n, n > 1)", "bool"),
        ("cel.bind(n, cores + 1, n * n)", "int"),
        ("max(cores, 1)", "int"),
        ("min(share, 1.0)", "double"),
        ("max(cores, share)", "double"),
        ("[1, 2.0][0]", "dyn"),
        ("dyn(cores) + 1", "dyn"),
        ("[]", "list(dyn)"),
        ("{1: ''}", "map(int, string)"),
        ("3u", "uint"),
        ("null", "null"),
    ] {
        assert_eq!(type_of(text).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn what_does_not_fit_together_is_told() {
    for (text, complaint) in [
        ("cpus + 1", "\"cpus\" is not known; known are cores, share, name"),
        ("[1].map(n, m)", "known are n, cores, share, name"),
        (
            "cores + 1.5",
            "no operator takes int on one side and double on the other",
        ),
        ("share % 2.0", "double"),
        ("cores + name", "string"),
        ("cores == name", "no operator"),
        ("name < 3", "no operator"),
        ("cores in name", "no operator"),
        ("cores && true", "bool is wanted, not int"),
        ("!cores", "bool is wanted, not int"),
        ("-name", "string has no negative"),
        ("cores ? 1 : 2", "bool is wanted, not int"),
        ("true ? 1 : 2.0", "between int and double"),
        ("max(cores, name)", "function max does not take int and string"),
        ("max(1u, 2u)", "function max does not take uint and uint"),
        ("cores.size()", "function size does not take int"),
        ("bool(cores)", "function bool does not take int"),
        ("cores.x", "int has no x"),
        ("[1]['a']", "list(int) has no string"),
        ("cores.all(n, n > 1)", "a list or a map is gone through, not int"),
        ("quantity('1Gi')", "function quantity does not exist"),
        ("[3, 4].max()", "function max does not exist"),
    ] {
        let refused = type_of(text).expect_err(text);
        assert!(refused.contains(complaint), "{text}: {refused}");
    }
}

proptest::proptest! {
    /// What the checker promises is what evaluating yields, if it yields anything.
    #[test]
    fn a_value_is_of_the_type_that_was_told(text in expression()) {
        let expression = Expression::read(&text, Functions::Arithmetic).expect("it was made to be read");
        let Ok(promised) = expression.type_over(&VARIABLES) else { return Ok(()) };
        let values = [("cores", Value::Int(4)), ("share", Value::Double(0.5)), ("name", Value::text("m5.large"))];
        if let Some(value) = expression.evaluate(&values) {
            let found = of_value(&value);
            proptest::prop_assert!(promised.is(&found), "{text} is {found}, not {promised}");
        }
    }
}

fn expression() -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::prelude::*;
    let leaf = proptest::sample::select(vec!["cores", "share", "name", "7", "0", "1.5", "'4'", "true"]);
    leaf.prop_map(str::to_owned).prop_recursive(4, 24, 3, |inner| {
        let operators = vec!["+", "-", "*", "/", "%", "<", "==", "&&", "||"];
        let calls = vec!["max", "min"];
        let conversions = vec!["int", "double", "string", "dyn"];
        prop_oneof![
            (inner.clone(), proptest::sample::select(operators), inner.clone())
                .prop_map(|(left, operator, right)| format!("({left} {operator} {right})")),
            (proptest::sample::select(calls), inner.clone(), inner.clone())
                .prop_map(|(call, one, other)| format!("{call}({one}, {other})")),
            (proptest::sample::select(conversions), inner.clone())
                .prop_map(|(conversion, value)| format!("{conversion}({value})")),
            (inner.clone(), inner.clone(), inner)
                .prop_map(|(condition, yes, no)| format!("({condition} ? {yes} : {no})")),
        ]
    })
}
