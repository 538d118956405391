//! Whether the caller's policy allows a call: [`policy`] reads and evaluates documents, [`asks`] knows what each call needs.

mod asks;
mod policy;

use http::StatusCode;

pub use self::{
    asks::of as needs,
    policy::{Ask, Policy, PolicyError, Verdict},
};
use crate::{
    refusal::Refusal,
    region::Region,
    wire::{Call, Service},
};

/// Refuses a call that the policy does not allow in every respect.
pub fn authorize(policy: &Policy, region: &Region, call: &Call) -> Result<(), Refusal> {
    for ask in needs(region, call) {
        let verdict = policy.verdict(&ask);
        if verdict != Verdict::Allowed {
            return Err(denied(region, call.service, &ask, verdict));
        }
    }
    Ok(())
}

/// In the words of the service: clients tell the cause by them.
fn denied(region: &Region, service: Service, ask: &Ask, verdict: Verdict) -> Refusal {
    let who = format!("arn:aws:sts::{}:assumed-role/karpenter/aws-fake", region.plan.account);
    let Ask { action, resource, .. } = ask;
    let because = match verdict {
        Verdict::Forbidden => "with an explicit deny in an identity-based policy".to_owned(),
        Verdict::Allowed | Verdict::NotAllowed => {
            format!("because no identity-based policy allows the {action} action")
        }
    };
    let text = format!("User: {who} is not authorized to perform: {action} on resource: {resource} {because}");
    match service {
        Service::Ec2 => {
            let message = format!("You are not authorized to perform this operation. {text}");
            Refusal::new("UnauthorizedOperation", message).with_status(StatusCode::FORBIDDEN)
        }
        Service::Iam | Service::Sts => Refusal::new("AccessDenied", text).with_status(StatusCode::FORBIDDEN),
        Service::Sqs | Service::Eks | Service::ZonalShift => {
            Refusal::new("AccessDeniedException", text).with_status(StatusCode::FORBIDDEN)
        }
        Service::Ssm | Service::Pricing => Refusal::new("AccessDeniedException", text),
    }
}

#[cfg(test)]
mod tests;
