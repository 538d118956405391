//! The way of a call: recorded faults first, then the throttle, the policy, the token, and at last the region.

use std::sync::Arc;

use clock::Clock;
use http::StatusCode;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::{
    iam::{self, Policy},
    idempotency::Tokens,
    record::{Record, Recorded},
    refusal::Refusal,
    region::{Plan, Region},
    throttle::Throttle,
    wire::{self, Answer, Call, Reply},
};

/// A refusal that a script has ordered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// A pattern: `CreateFleet`, `Describe*`.
    pub action: String,
    pub refusal: Refusal,
    /// How many calls it still meets; without a number all of them.
    pub times: Option<u32>,
}

/// Everything that the fake knows.
#[derive(Debug)]
pub struct State {
    pub region: Region,
    pub throttle: Throttle,
    pub faults: Vec<Fault>,
    /// Without one everything is allowed.
    pub policy: Option<Policy>,
    pub record: Record,
    tokens: Tokens,
    requests: u64,
}

/// What became of a call.
#[derive(Debug)]
pub enum Outcome {
    Answered(Answer),
    /// Nothing yet; ask again when something has changed, and no later than that.
    Wait(Timestamp),
}

impl State {
    pub fn new(plan: Plan, now: Timestamp) -> Self {
        Self {
            region: Region::new(plan, now),
            throttle: Throttle::default(),
            faults: Vec::new(),
            policy: None,
            record: Record::default(),
            tokens: Tokens::default(),
            requests: 0,
        }
    }

    /// Answers a call. A call that waits has passed the throttle already, and passes it only once.
    pub fn answer(&mut self, call: &Call, waited: bool, now: Timestamp) -> Outcome {
        self.region.advance(now);
        if !waited {
            self.requests += 1;
        }
        let request_id = format!("00000000-0000-4000-8000-{:012x}", self.requests);
        let answer = match self.outcome(call, waited, &request_id, now) {
            Ok(Outcome::Wait(until)) => return Outcome::Wait(until),
            Ok(Outcome::Answered(answer)) => answer,
            Err(refusal) => {
                let answer = wire::refused(call, &refusal, &request_id);
                self.note(call, answer.status, Some(refusal.code), now);
                return Outcome::Answered(answer);
            }
        };
        self.note(call, answer.status, None, now);
        Outcome::Answered(answer)
    }

    /// Answers with nothing a call that has waited long enough.
    pub fn give_up_waiting(&mut self, call: &Call, now: Timestamp) -> Answer {
        let answer = wire::written(call, Reply::Wait(now), "00000000-0000-4000-8000-000000000000");
        self.note(call, answer.status, None, now);
        answer
    }

    fn outcome(&mut self, call: &Call, waited: bool, request_id: &str, now: Timestamp) -> Result<Outcome, Refusal> {
        if !waited {
            self.ordered_fault(call)?;
            self.throttle.admit(call, now)?;
            if let Some(policy) = &self.policy {
                iam::authorize(policy, &self.region, call)?;
            }
            if let Some(answer) = self.tokens.answered(call)? {
                return Ok(Outcome::Answered(answer));
            }
        }
        match wire::carry_out(&mut self.region, call, now)? {
            Reply::Wait(until) => Ok(Outcome::Wait(until)),
            reply => {
                let answer = wire::written(call, reply, request_id);
                self.tokens.remember(call, &answer);
                Ok(Outcome::Answered(answer))
            }
        }
    }

    fn ordered_fault(&mut self, call: &Call) -> Result<(), Refusal> {
        let meets = |fault: &&mut Fault| fault.times != Some(0) && crate::glob::fits(&fault.action, &call.action);
        match self.faults.iter_mut().find(meets) {
            None => Ok(()),
            Some(fault) => {
                fault.times = fault.times.map(|times| times - 1);
                Err(fault.refusal.clone())
            }
        }
    }

    fn note(&mut self, call: &Call, status: StatusCode, error: Option<String>, now: Timestamp) {
        self.record.add(Recorded {
            time: now,
            service: call.service.name(),
            action: call.action.clone(),
            parameters: call.shown(),
            attempt: call.attempt,
            status: status.as_u16(),
            error,
        });
    }
}

/// The fake as its users share it: clones are handles to the same.
#[derive(Clone, Debug)]
pub struct Fake {
    state: Arc<Mutex<State>>,
    clock: Arc<dyn Clock>,
    changed: Arc<Notify>,
}

impl Fake {
    pub fn new(plan: Plan, clock: Arc<dyn Clock>) -> Self {
        let state = State::new(plan, clock.now());
        Self {
            state: Arc::new(Mutex::new(state)),
            clock,
            changed: Arc::default(),
        }
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Looks at the state, or changes it, at the present moment; whoever waits for a message looks again.
    pub fn with<T>(&self, use_it: impl FnOnce(&mut State, Timestamp) -> T) -> T {
        let mut state = self.state.lock();
        let now = self.clock.now();
        state.region.advance(now);
        let result = use_it(&mut state, now);
        drop(state);
        self.changed.notify_waiters();
        result
    }

    /// Answers a call, at once or when there is something to say.
    pub async fn call(&self, call: &Call) -> Answer {
        let mut limit = None;
        loop {
            let changed = self.changed.notified();
            let (outcome, now) = {
                let mut state = self.state.lock();
                let now = self.clock.now();
                (state.answer(call, limit.is_some(), now), now)
            };
            let until = match outcome {
                Outcome::Answered(answer) => {
                    self.changed.notify_waiters();
                    return answer;
                }
                Outcome::Wait(until) => *limit.get_or_insert(until),
            };
            if until <= now {
                return self.state.lock().give_up_waiting(call, now);
            }
            // Instances change their state by themselves, so a waiting call also looks when nothing was called.
            let pause = until.duration_since(now).min(jiff::SignedDuration::from_secs(1));
            tokio::select! {
                biased;
                () = changed => {}
                () = tokio::time::sleep(pause.unsigned_abs()) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;
