//! What was asked of the cloud and what came of it, for checkers and summaries.

use std::{collections::VecDeque, fmt};

use jiff::Timestamp;
use model::{ClaimName, ProviderId};

use crate::machine::OfferingKey;

/// How many entries are kept. A controller may run for months; a simulation of a day makes fewer than this.
const KEPT: usize = 100_000;

#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub at: Timestamp,
    pub deed: Deed,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Deed {
    /// A machine came into being.
    Launched {
        token: String,
        claim: ClaimName,
        id: ProviderId,
        offering: OfferingKey,
    },
    /// A second call with a token got the machine of the first.
    Repeated {
        token: String,
        id: ProviderId,
    },
    Refused {
        token: String,
        claim: ClaimName,
        why: String,
    },
    /// A launch for a claim that has a machine already under another token. Never happens unless a caller is wrong.
    Doubled {
        token: String,
        claim: ClaimName,
        id: ProviderId,
    },
    TerminationAsked {
        id: ProviderId,
    },
    Interrupted {
        id: ProviderId,
    },
    Joined {
        id: ProviderId,
    },
    NodeRemoved {
        id: ProviderId,
    },
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.at, self.deed)
    }
}

impl fmt::Display for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Deed::Launched {
                claim, id, offering, ..
            } => write!(f, "launch {id} {offering} for {claim}"),
            Deed::Repeated { id, .. } => write!(f, "launch {id} asked for again"),
            Deed::Refused { claim, why, .. } => write!(f, "no launch for {claim}: {why}"),
            Deed::Doubled { claim, id, .. } => write!(f, "second launch for {claim} while it has {id}"),
            Deed::TerminationAsked { id } => write!(f, "terminate {id}"),
            Deed::Interrupted { id } => write!(f, "interrupt {id}"),
            Deed::Joined { id } => write!(f, "join {id}"),
            Deed::NodeRemoved { id } => write!(f, "remove node of {id}"),
        }
    }
}

#[derive(Debug, Default)]
pub struct Ledger(VecDeque<Entry>);

impl Ledger {
    pub fn write(&mut self, at: Timestamp, deed: Deed) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(Entry { at, deed });
    }

    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.0.iter()
    }
}
