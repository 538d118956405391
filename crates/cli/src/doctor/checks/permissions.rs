//! Whether the controller's account may do what the controller does.

use std::collections::BTreeMap;

use crate::{
    doctor::{facts::Facts, finding::Finding},
    reader::{Right, Unread},
};

const CHECK: &str = "rights";
const FIX: &str = "the roles of the chart are not in force: helm upgrade the chart, or apply the roles of deploy/manifests/karpenter.yaml";

pub fn rights(facts: &Facts) -> Vec<Finding> {
    if facts.rights.is_empty() {
        return vec![Finding::unknown(CHECK, "no account of a controller to ask about")];
    }
    let refused = facts.rights.iter().find_map(|(_, answer)| answer.as_ref().err());
    if let Some(why) = refused {
        let finding = Finding::unknown(
            CHECK,
            format!("the API server does not say what the controller may do: {why}"),
        );
        return vec![match why {
            Unread::Forbidden(_) => finding.fix("run the doctor as somebody who may create subjectaccessreviews"),
            _ => finding,
        }];
    }
    let mut denied: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (right, _) in facts.rights.iter().filter(|(_, answer)| *answer == Ok(false)) {
        denied.entry(place(right)).or_default().push(&right.verb);
    }
    if denied.is_empty() {
        let what = format!("all {} that the chart's roles give", facts.rights.len());
        return vec![Finding::ok(CHECK, what)];
    }
    let findings = denied.iter().map(|(resource, verbs)| {
        let what = format!("the controller may not {}", verbs.join(", "));
        Finding::problem(CHECK, what).about(resource).fix(FIX)
    });
    findings.collect()
}

fn place(right: &Right) -> String {
    let group = if right.group.is_empty() {
        String::new()
    } else {
        format!(".{}", right.group)
    };
    let namespace = right.namespace.as_ref().map(|namespace| format!(" in {namespace}"));
    format!("{}{group}{}", right.resource, namespace.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::{
        super::situation::{Situation, check},
        *,
    };

    fn right(resource: &str, verb: &str) -> Right {
        Right {
            group: "karpenter.sh".to_owned(),
            resource: resource.to_owned(),
            verb: verb.to_owned(),
            namespace: None,
            name: None,
        }
    }

    #[test]
    fn what_the_controller_may_not_do_is_told_by_resource() {
        let with = |rights| Situation {
            rights,
            ..Situation::default()
        };
        check(rights, with(vec![]), "unknown: no account of a controller to ask about");
        check(
            rights,
            with(vec![(right("nodeclaims", "create"), Ok(true))]),
            "ok: all 1 that the chart's roles give",
        );
        check(
            rights,
            with(vec![
                (right("nodeclaims", "create"), Ok(false)),
                (right("nodeclaims", "delete"), Ok(false)),
                (right("nodepools", "list"), Ok(true)),
            ]),
            "problem nodeclaims.karpenter.sh: the controller may not create, delete",
        );
        check(
            rights,
            with(vec![(
                right("nodeclaims", "create"),
                Err(Unread::Forbidden("no".to_owned())),
            )]),
            "unknown: the API server does not say what the controller may do: not allowed: no",
        );
    }
}
