//! What follows from a look at a class.

use std::error::Error;

use api::{
    aws::EC2NodeClass,
    conditions::{Conditions, HasConditions, ec2_node_class as condition},
    labels::finalizers,
};
use controllers::error::chain;
use jiff::Timestamp;
use provider_aws::{error::AwsError, validation::Verdict};

use super::ClassError;

/// What keeps a class from being judged, for whoever describes it.
#[derive(Debug, PartialEq, Eq)]
pub struct Complaint {
    pub reason: &'static str,
    /// What could not be done, without the particulars.
    pub about: String,
    pub message: String,
}

/// The conditions of a class stay as they were when AWS could not be asked, so that an event says why and what would help.
/// What passes by itself is not worth one.
pub fn complaint(failure: &ClassError) -> Option<Complaint> {
    let (reason, cause): (&str, &(dyn Error + 'static)) = match failure {
        ClassError::Resolve(cause) => ("ResolutionFailed", cause),
        ClassError::Validate(cause) => ("ValidationFailed", cause),
        ClassError::Api(_) | ClassError::CleanUp(_) => return None,
    };
    let causes = std::iter::successors(Some(cause), |&error| error.source());
    let refusal = causes.filter_map(|error| error.downcast_ref::<AwsError>()).next();
    if refusal.is_some_and(AwsError::is_throttled) {
        return None;
    }
    let remedy = refusal.and_then(AwsError::remedy).map(|remedy| format!("; {remedy}"));
    Some(Complaint {
        reason,
        about: cause.to_string(),
        message: format!("{}{}", chain(cause), remedy.unwrap_or_default()),
    })
}

/// The class with our finalizer.
pub fn held(class: &EC2NodeClass) -> EC2NodeClass {
    let mut held = class.clone();
    let finalizers = held.metadata.finalizers.get_or_insert_default();
    if !finalizers.iter().any(|name| name == finalizers::EC2_NODE_CLASS) {
        finalizers.push(finalizers::EC2_NODE_CLASS.to_owned());
    }
    held
}

/// The class without our finalizer.
pub fn released(class: &EC2NodeClass) -> EC2NodeClass {
    let mut released = class.clone();
    if let Some(finalizers) = &mut released.metadata.finalizers {
        finalizers.retain(|name| name != finalizers::EC2_NODE_CLASS);
    }
    released
}

/// Notes the verdict on the class. Reserved capacity counts only where the feature is on.
pub fn note(class: &mut EC2NodeClass, verdict: &Verdict, reserved_capacity: bool, now: Timestamp) {
    let mut dependents = EC2NodeClass::DEPENDENTS.to_vec();
    if reserved_capacity {
        dependents.push(condition::CAPACITY_RESERVATIONS_READY);
    }
    let mut conditions = Conditions::with_dependents(class, dependents, now);
    let type_ = condition::VALIDATION_SUCCEEDED;
    match verdict {
        Verdict::Valid => conditions.set_true(type_, now),
        Verdict::Invalid { reason, message } => conditions.set_false(type_, reason, message, now),
        Verdict::Open { reason, message } => conditions.set_unknown(type_, reason, message, now),
    };
    class.status.get_or_insert_default().conditions = Some(conditions.into_list());
}

/// Up to five names, and how many more there are.
pub fn listed(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = names
        .iter()
        .take(SHOWN)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use provider_aws::class_status::ResolveError;

    use super::*;

    #[test]
    fn what_does_not_pass_by_itself_is_told_with_what_would_help() {
        let of = |cause| complaint(&ClassError::Resolve(ResolveError::Aws { what: "subnets", cause }));
        let told = of(AwsError::new("UnauthorizedOperation", "no ec2:DescribeSubnets")).expect("a complaint");
        assert_eq!(told.reason, "ResolutionFailed");
        assert_eq!(
            told.message,
            "subnets could not be resolved: UnauthorizedOperation: no ec2:DescribeSubnets; allow it in the policy of the \
             controller's role"
        );
        assert_eq!(of(AwsError::new("RequestLimitExceeded", "")), None);
    }

    #[test]
    fn a_class_is_held_once_and_let_go() {
        let class = EC2NodeClass::default();
        let once = held(&class);
        assert_eq!(held(&once), once);
        assert_eq!(released(&once).metadata.finalizers, Some(Vec::new()));
    }

    #[test]
    fn long_lists_are_cut() {
        let names: Vec<String> = (1..=7).map(|number| format!("claim-{number}")).collect();
        assert_eq!(listed(&names[..2]), "claim-1, claim-2");
        assert_eq!(listed(&names), "claim-1, claim-2, claim-3, claim-4, claim-5 and 2 more");
    }

    /// AW24.4.9
    #[test]
    fn a_class_has_one_more_condition_with_reserved_capacity() {
        let count = |reserved| {
            let mut class = EC2NodeClass::default();
            note(&mut class, &Verdict::Valid, reserved, Timestamp::UNIX_EPOCH);
            class.conditions().len()
        };
        assert_eq!((count(false), count(true)), (7, 8));
    }
}
