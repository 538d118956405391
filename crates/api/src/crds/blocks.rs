//! Parts of a schema that several kinds share: taints, requirements, references, conditions.

use super::Variant;
use super::patterns::{CONDITION_REASON, CONDITION_REASON_OR_EMPTY, CONDITION_TYPE, QUALIFIED_NAME};
use super::schema::{
    Fact, Schema, cel, description, list_map_keys, list_type, max_items, max_length, maximum, min_length, minimum,
    one_of, pattern, required, without,
};
use crate::labels;

/// The kinds whose requirements differ in detail.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    Pool,
    Claim,
    Overlay,
}

pub fn taints(schema: Schema, path: &str) -> Schema {
    schema
        .at(path, [list_type("atomic")])
        .at(
            &format!("{path}[]"),
            [
                description("Keeps pods away that do not tolerate it."),
                required(&["effect", "key"]),
            ],
        )
        .at(
            &format!("{path}[].key"),
            [
                description("The key of the taint."),
                min_length(1),
                pattern(QUALIFIED_NAME),
            ],
        )
        .at(
            &format!("{path}[].value"),
            [description("The value of the taint."), pattern(QUALIFIED_NAME)],
        )
        .at(
            &format!("{path}[].timeAdded"),
            [description("When the taint was added.")],
        )
        .at(
            &format!("{path}[].effect"),
            [
                description("What happens to pods that do not tolerate the taint."),
                one_of(&["NoSchedule", "PreferNoSchedule", "NoExecute"]),
            ],
        )
}

pub fn requirements(schema: Schema, path: &str, holder: Holder, variant: Variant) -> Schema {
    let schema = schema
        .at(path, [list_type("atomic"), max_items(100)])
        .at(path, requirement_rules(holder))
        .at(&format!("{path}[].key"), [max_length(316), pattern(QUALIFIED_NAME)])
        .at(&format!("{path}[].key"), key_rules(holder, variant))
        .at(&format!("{path}[].values"), [list_type("atomic")]);
    if holder == Holder::Overlay {
        return schema;
    }
    schema.at(
        &format!("{path}[].minValues"),
        [without("format"), minimum(1), maximum(50)],
    )
}

fn requirement_rules(holder: Holder) -> Vec<Fact> {
    let in_has_value = cel(
        "self.all(x, x.operator == 'In' ? x.values.size() != 0 : true)",
        "requirements with operator 'In' must have a value defined",
    );
    let bound_rule = "self.all(x, (x.operator == 'Gt' || x.operator == 'Lt' || x.operator == 'Gte' || x.operator == 'Lte') ? (x.values.size() == 1 && int(x.values[0]) >= 0) : true)";
    if holder == Holder::Overlay {
        return vec![
            cel(
                "self.all(x, x.operator == 'NotIn' ? x.values.size() != 0 : true)",
                "requirements with operator 'NotIn' must have a value defined",
            ),
            in_has_value,
            cel(
                bound_rule,
                "requirements operator 'Gt', 'Lt', 'Gte' or 'Lte' must have a single positive integer value",
            ),
        ];
    }
    vec![
        in_has_value,
        cel(
            bound_rule,
            "requirements operator 'Gt', 'Lt', 'Gte', or 'Lte' must have a single positive integer value",
        ),
        cel(
            "self.all(x, (x.operator == 'In' && has(x.minValues)) ? x.values.size() >= x.minValues : true)",
            "requirements with 'minValues' must have at least that many values specified in the 'values' field",
        ),
    ]
}

fn key_rules(holder: Holder, variant: Variant) -> Vec<Fact> {
    let mut rules = vec![cel(
        in_or_outside("self", &[labels::CAPACITY_TYPE, labels::NODE_POOL], labels::DOMAIN),
        domain_message(labels::DOMAIN),
    )];
    if holder == Holder::Pool {
        rules.push(cel(
            format!(r#"self != "{}""#, labels::NODE_POOL),
            label_message(labels::NODE_POOL),
        ));
    }
    rules.push(cel(
        format!(r#"self != "{}""#, labels::HOSTNAME),
        label_message(labels::HOSTNAME),
    ));
    if let Some((allowed, domain)) = provider_domain(holder, variant) {
        rules.push(cel(in_or_outside("self", &allowed, domain), domain_message(domain)));
    }
    rules
}

/// The rules for the keys of a label map, which only the NodePool template has.
pub fn label_rules(variant: Variant) -> Vec<Fact> {
    let for_all = |rule: String| format!("self.all(x, {rule})");
    let mut rules = vec![
        cel(
            for_all(in_or_outside(
                "x",
                &[labels::CAPACITY_TYPE, labels::NODE_POOL],
                labels::DOMAIN,
            )),
            domain_message(labels::DOMAIN),
        ),
        cel(
            for_all(format!(r#"x != "{}""#, labels::NODE_POOL)),
            label_message(labels::NODE_POOL),
        ),
        cel(
            for_all(format!(r#"x != "{}""#, labels::HOSTNAME)),
            label_message(labels::HOSTNAME),
        ),
    ];
    // The simulated provider reserves its domain in requirements only, as upstream's does.
    if variant == Variant::Aws
        && let Some((allowed, domain)) = provider_domain(Holder::Pool, variant)
    {
        rules.push(cel(
            for_all(in_or_outside("x", &allowed, domain)),
            domain_message(domain),
        ));
    }
    rules
}

/// The provider's reserved domain and the keys of it that are allowed nevertheless.
fn provider_domain(holder: Holder, variant: Variant) -> Option<(Vec<&'static str>, &'static str)> {
    match variant {
        Variant::Core => None,
        Variant::Aws => {
            let mut allowed = vec![labels::aws::NODE_CLASS];
            allowed.extend(labels::aws::INSTANCE_FACTS);
            if holder != Holder::Overlay {
                allowed.extend(labels::aws::PLACEMENT);
            }
            Some((allowed, labels::AWS_DOMAIN))
        }
        Variant::Kwok if holder == Holder::Overlay => None,
        Variant::Kwok => Some((
            vec![
                labels::kwok::NODE_CLASS,
                labels::kwok::INSTANCE_CPU,
                labels::kwok::INSTANCE_MEMORY,
                labels::kwok::INSTANCE_FAMILY,
                labels::kwok::INSTANCE_SIZE,
            ],
            labels::KWOK_DOMAIN,
        )),
    }
}

/// `endsWith` covers subdomains, and also refuses domains that merely end in the same letters.
fn in_or_outside(variable: &str, allowed: &[&str], domain: &str) -> String {
    let allowed = allowed
        .iter()
        .map(|key| format!("{key:?}"))
        .collect::<Vec<_>>()
        .join(", ");
    format!(r#"{variable} in [{allowed}] || !{variable}.find("^([^/]+)").endsWith("{domain}")"#)
}

fn domain_message(domain: &str) -> String {
    format!("label domain {domain:?} is restricted")
}

fn label_message(label: &str) -> String {
    format!("label {label:?} is restricted")
}

pub fn node_class_ref(schema: Schema, path: &str) -> Schema {
    let mut schema = schema.at(&format!("{path}.group"), [pattern("^[^/]*$")]);
    for field in ["group", "kind", "name"] {
        schema = schema.at(
            &format!("{path}.{field}"),
            [cel("self != ''", format!("{field} may not be empty"))],
        );
    }
    schema
}

/// Conditions whose reason and message must be there; the server refuses two of one type.
pub fn strict_conditions(schema: Schema, path: &str) -> Schema {
    unkeyed_conditions(schema, path).at(path, [list_type("map"), list_map_keys(&["type"])])
}

/// As [`strict_conditions`], without the map key.
pub fn unkeyed_conditions(schema: Schema, path: &str) -> Schema {
    condition_fields(schema, path)
        .at(
            &format!("{path}[]"),
            [required(&["lastTransitionTime", "message", "reason", "status", "type"])],
        )
        .at(&format!("{path}[].reason"), [min_length(1), pattern(CONDITION_REASON)])
}

/// As [`strict_conditions`], with reason and message optional.
pub fn lenient_conditions(schema: Schema, path: &str) -> Schema {
    condition_fields(schema, path)
        .at(path, [list_type("map"), list_map_keys(&["type"])])
        .at(
            &format!("{path}[]"),
            [required(&["lastTransitionTime", "status", "type"])],
        )
        .at(&format!("{path}[].reason"), [pattern(CONDITION_REASON_OR_EMPTY)])
}

fn condition_fields(schema: Schema, path: &str) -> Schema {
    let field = |name: &str| format!("{path}[].{name}");
    schema
        .at(&format!("{path}[]"), [description("One aspect of the object's state.")])
        .at(
            &field("type"),
            [description("The aspect."), max_length(316), pattern(CONDITION_TYPE)],
        )
        .at(
            &field("status"),
            [description("Whether it holds."), one_of(&["True", "False", "Unknown"])],
        )
        .at(&field("reason"), [description("Why, in one word."), max_length(1024)])
        .at(
            &field("message"),
            [description("Why, in a sentence."), max_length(32768)],
        )
        .at(
            &field("lastTransitionTime"),
            [description("When the status last changed.")],
        )
        .at(
            &field("observedGeneration"),
            [
                description("The generation of the object that this was said about."),
                minimum(0),
            ],
        )
}
