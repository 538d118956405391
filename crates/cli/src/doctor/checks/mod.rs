//! One question per file, each answered from the facts alone: what is wrong, and what helps.

mod claims;
mod classes;
mod controller;
mod definitions;
mod finalizers;
mod mapping;
mod nodes;
mod permissions;
mod pools;
mod rivals;
#[cfg(test)]
pub mod situation;

use super::{downgrade, facts::Facts, finding::Finding};

pub use definitions::is_newer;

/// Every finding, in the order in which causes come before their effects. A check that finds nothing wrong says so.
pub fn all(facts: &Facts) -> Vec<Finding> {
    let checks: [fn(&Facts) -> Vec<Finding>; 15] = [
        controller::version,
        definitions::definitions,
        definitions::older_generation,
        definitions::left_webhooks,
        controller::deployment,
        controller::settings,
        controller::dns,
        permissions::rights,
        rivals::lease,
        rivals::autoscalers,
        classes::classes,
        pools::pools,
        mapping::node_roles,
        claims::claims,
        nodes::nodes,
    ];
    let mut findings: Vec<Finding> = checks.iter().flat_map(|check| check(facts)).collect();
    findings.extend(downgrade::of_this_build(facts));
    findings.extend(finalizers::left_behind(facts));
    findings
}

/// What was found, or that nothing was.
pub fn or_ok(findings: Vec<Finding>, check: &'static str, what: impl Into<String>) -> Vec<Finding> {
    if findings.is_empty() {
        vec![Finding::ok(check, what)]
    } else {
        findings
    }
}
