//! Client tokens: a call that is made again is answered as the first time, and launches nothing more.

use std::collections::BTreeMap;

use crate::{
    refusal::Refusal,
    wire::{Answer, Call, Parameters, Service},
};

/// The calls of EC2 that take tokens here.
const ACTIONS: [&str; 3] = ["CreateFleet", "CreateLaunchTemplate", "RunInstances"];

#[derive(Debug, Default)]
pub struct Tokens(BTreeMap<(String, String), (Parameters, Answer)>);

/// The token of a call that would change something.
fn token(call: &Call) -> Option<(String, String)> {
    let Parameters::Form(params) = &call.parameters else {
        return None;
    };
    let concerned = call.service == Service::Ec2 && ACTIONS.contains(&call.action.as_str()) && !params.flag("DryRun");
    let token = params.text("ClientToken").filter(|_| concerned)?;
    Some((call.action.clone(), token.to_owned()))
}

impl Tokens {
    /// The answer of a call that has been made before.
    ///
    /// # Errors
    ///
    /// A token that has been used for another request.
    pub fn answered(&self, call: &Call) -> Result<Option<Answer>, Refusal> {
        let Some((parameters, answer)) = token(call).and_then(|token| self.0.get(&token)) else {
            return Ok(None);
        };
        if *parameters != call.parameters {
            let message = "The request uses the same client token as a previous, but non-identical request.";
            return Err(Refusal::new("IdempotentParameterMismatch", message));
        }
        Ok(Some(answer.clone()))
    }

    pub fn remember(&mut self, call: &Call, answer: &Answer) {
        if let Some(token) = token(call) {
            self.0.insert(token, (call.parameters.clone(), answer.clone()));
        }
    }
}
