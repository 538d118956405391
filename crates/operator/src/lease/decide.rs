//! What to do about a lease, given what was seen of it and when.

use k8s_openapi::api::coordination::v1::Lease;
use tokio::time::Instant;

use super::DURATION;

/// The lease as last read, and since when it has looked like that.
pub(super) struct Sighting {
    pub lease: Option<Lease>,
    since: Instant,
}

impl Sighting {
    /// The clock of a holder's liveness restarts whenever the lease has changed.
    pub fn of(found: Option<Lease>, before: Option<Sighting>, now: Instant) -> Self {
        let version = |lease: &Option<Lease>| lease.as_ref().and_then(|lease| lease.metadata.resource_version.clone());
        let since = match before {
            Some(before) if version(&before.lease) == version(&found) => before.since,
            _ => now,
        };
        Self { lease: found, since }
    }

    pub fn holder(&self) -> Option<&str> {
        let spec = self.lease.as_ref()?.spec.as_ref()?;
        spec.holder_identity.as_deref().filter(|holder| !holder.is_empty())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    Create,
    /// Free, given back, or its holder has not been heard of for too long.
    Take,
    Renew,
    Wait,
}

pub(super) fn decide(sighting: &Sighting, identity: &str, now: Instant) -> Move {
    if sighting.lease.is_none() {
        return Move::Create;
    }
    match sighting.holder() {
        Some(holder) if holder == identity => Move::Renew,
        Some(_) if now.duration_since(sighting.since) < DURATION => Move::Wait,
        Some(_) | None => Move::Take,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use k8s_openapi::api::coordination::v1::LeaseSpec;
    use kube::api::ObjectMeta;

    use super::*;

    fn lease(holder: &str, version: &str) -> Option<Lease> {
        let metadata = ObjectMeta {
            resource_version: Some(version.to_owned()),
            ..ObjectMeta::default()
        };
        let spec = LeaseSpec {
            holder_identity: Some(holder.to_owned()),
            ..LeaseSpec::default()
        };
        Some(Lease {
            metadata,
            spec: Some(spec),
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_is_taken_only_from_a_holder_that_has_gone_silent() {
        let start = Instant::now();
        let later = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(decide(&Sighting::of(None, None, start), "me", start), Move::Create);
        assert_eq!(
            decide(&Sighting::of(lease("", "1"), None, start), "me", start),
            Move::Take
        );
        assert_eq!(
            decide(&Sighting::of(lease("me", "1"), None, start), "me", start),
            Move::Renew
        );

        let seen = Sighting::of(lease("other", "1"), None, start);
        assert_eq!(decide(&seen, "me", later(14)), Move::Wait);
        let renewed = Sighting::of(lease("other", "2"), Some(seen), later(14));
        assert_eq!(
            decide(&renewed, "me", later(28)),
            Move::Wait,
            "a renewal restarts the wait"
        );
        let silent = Sighting::of(lease("other", "2"), Some(renewed), later(28));
        assert_eq!(decide(&silent, "me", later(29)), Move::Take);
    }
}
