//! The capacity reservations of classes, and how much is left of each.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::aws::{
    CapacityReservation, CapacityReservationSelectorTerm, InstanceMatchCriteria, ReservationState, ReservationType,
};
use clock::Clock;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use parking_lot::Mutex;

use crate::{
    cache::Cache,
    error::AwsError,
    ports::{Ec2, Filter, ReservationInfo, ReservationQuery},
};

const QUERY_TTL: SignedDuration = SignedDuration::from_mins(1);
const AVAILABILITY_TTL: SignedDuration = SignedDuration::from_hours(24);
/// EC2 starts to take instances of a capacity block back half an hour before its end; pods need time to move.
const BLOCK_LEAD: SignedDuration = SignedDuration::from_mins(40);

#[derive(Clone, Copy, Debug)]
struct Left {
    count: u32,
    counted: Timestamp,
}

/// Finds reservations and keeps count of them.
pub struct Reservations {
    ec2: Arc<dyn Ec2>,
    clock: Arc<dyn Clock>,
    found: Cache<ReservationQuery, Vec<ReservationInfo>>,
    left: Mutex<BTreeMap<String, Left>>,
}

/// A reservation that cannot be used because EC2 describes it in words that are not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("reservation {id} has the unknown {field} {word:?}")]
pub struct UnusableReservation {
    pub id: String,
    pub field: &'static str,
    pub word: String,
}

impl Reservations {
    pub fn new(ec2: Arc<dyn Ec2>, clock: Arc<dyn Clock>) -> Self {
        Self {
            ec2,
            found: Cache::new(clock.clone(), QUERY_TTL),
            clock,
            left: Mutex::default(),
        }
    }

    /// The reservations that the terms select and that have not ended, by id.
    pub async fn of(&self, terms: &[CapacityReservationSelectorTerm]) -> Result<Vec<ReservationInfo>, AwsError> {
        let queries: BTreeSet<ReservationQuery> = terms.iter().map(query_of).collect();
        let mut all: BTreeMap<String, ReservationInfo> = BTreeMap::new();
        for query in queries {
            for reservation in self.found.get_or_fetch(query.clone(), self.ask(&query)).await? {
                all.insert(reservation.id.clone(), reservation);
            }
        }
        let now = self.clock.now();
        all.retain(|_, reservation| reservation.ends.is_none_or(|ends| now < ends));
        Ok(all.into_values().collect())
    }

    async fn ask(&self, query: &ReservationQuery) -> Result<Vec<ReservationInfo>, AwsError> {
        let found = match self.ec2.capacity_reservations(query).await {
            Ok(found) => found,
            Err(error) if error.is_not_found() => Vec::new(),
            Err(error) => return Err(error),
        };
        let counted = self.clock.now();
        let mut left = self.left.lock();
        left.retain(|_, known| counted.duration_since(known.counted) < AVAILABILITY_TTL);
        for reservation in &found {
            let count = reservation.available;
            left.insert(reservation.id.clone(), Left { count, counted });
        }
        Ok(found)
    }

    /// How many instances the reservation still takes; none of one that is not known.
    pub fn left(&self, id: &str) -> u32 {
        self.left.lock().get(id).map_or(0, |left| left.count)
    }

    pub fn launched(&self, id: &str) {
        self.change(id, |count| count.saturating_sub(1));
    }

    pub fn terminated(&self, id: &str) {
        self.change(id, |count| count.saturating_add(1));
    }

    pub fn exhausted(&self, id: &str) {
        self.change(id, |_| 0);
    }

    fn change(&self, id: &str, change: impl Fn(u32) -> u32) {
        if let Some(left) = self.left.lock().get_mut(id) {
            left.count = change(left.count);
        }
    }
}

fn query_of(term: &CapacityReservationSelectorTerm) -> ReservationQuery {
    if let Some(id) = &term.id {
        return ReservationQuery::Id(id.clone());
    }
    let mut filters: Vec<Filter> = Vec::new();
    filters.extend(
        term.owner_id
            .as_ref()
            .map(|owner| Filter::new("owner-id", [owner.as_str()])),
    );
    filters.extend(Filter::tags(term.tags.iter().flatten()));
    let criteria = term.instance_match_criteria.as_ref();
    filters.extend(criteria.map(|criteria| Filter::new("instance-match-criteria", [criteria.as_str()])));
    ReservationQuery::Matching(filters)
}

/// A reservation as the status of a class has it.
pub fn to_status(info: &ReservationInfo, now: Timestamp) -> Result<CapacityReservation, UnusableReservation> {
    let unusable = |field, word: &str| UnusableReservation {
        id: info.id.clone(),
        field,
        word: word.to_owned(),
    };
    let criteria = match InstanceMatchCriteria::from(info.match_criteria.as_str()) {
        InstanceMatchCriteria::Other(word) => return Err(unusable("match criteria", &word)),
        known => known,
    };
    let kind = match info.reservation_type.as_str() {
        "" | "default" => ReservationType::Default,
        "capacity-block" => ReservationType::CapacityBlock,
        word => return Err(unusable("type", word)),
    };
    let is_ending = |ends: Timestamp| ends.duration_since(now) <= BLOCK_LEAD;
    let is_expiring = kind == ReservationType::CapacityBlock && info.ends.is_some_and(is_ending);
    Ok(CapacityReservation {
        availability_zone: info.zone.clone(),
        end_time: info.ends.map(Time),
        id: info.id.clone(),
        instance_match_criteria: criteria,
        instance_type: info.instance_type.clone(),
        owner_id: info.owner.clone(),
        reservation_type: Some(kind),
        interruptible: Some(info.interruptible),
        state: Some(if is_expiring {
            ReservationState::Expiring
        } else {
            ReservationState::Active
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fake::FakeAws;

    fn info(id: &str, kind: &str, ends: Option<Timestamp>) -> ReservationInfo {
        ReservationInfo {
            id: id.to_owned(),
            zone: "us-west-2a".to_owned(),
            instance_type: "m5.large".to_owned(),
            owner: "123456789012".to_owned(),
            match_criteria: "open".to_owned(),
            reservation_type: kind.to_owned(),
            interruptible: false,
            ends,
            available: 2,
        }
    }

    /// AW24.4.6, AW24.4.7, AW24.4.10
    #[tokio::test(start_paused = true)]
    async fn reservations_are_found_and_counted() {
        let aws = FakeAws::new();
        let soon = aws.now().checked_add(SignedDuration::from_secs(30)).unwrap();
        aws.add_reservation(info("cr-1", "default", None), &[("team", "a")]);
        aws.add_reservation(info("cr-2", "default", Some(soon)), &[("team", "a")]);
        let reservations = Reservations::new(aws.ports().ec2, aws.clock());
        let term = |id: Option<&str>, team: Option<&str>, criteria: Option<&str>| CapacityReservationSelectorTerm {
            id: id.map(str::to_owned),
            tags: team.map(|team| [("team".to_owned(), team.to_owned())].into()),
            owner_id: team.map(|_| "123456789012".to_owned()),
            instance_match_criteria: criteria.map(InstanceMatchCriteria::from),
        };
        let ids = async |terms: &[CapacityReservationSelectorTerm]| {
            let found = reservations.of(terms).await.unwrap();
            found.into_iter().map(|one| one.id).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(ids(&[term(Some("cr-1"), None, None)]).await, "cr-1");
        assert_eq!(ids(&[term(Some("cr-9"), None, None)]).await, "");
        assert_eq!(
            ids(&[term(None, Some("a"), None), term(Some("cr-1"), None, None)]).await,
            "cr-1 cr-2"
        );
        assert_eq!(ids(&[term(None, None, Some("targeted"))]).await, "");
        assert_eq!(ids(&[term(None, Some("a"), Some("open"))]).await, "cr-1 cr-2");
        tokio::time::advance(std::time::Duration::from_secs(40)).await;
        assert_eq!(
            ids(&[term(None, Some("a"), None)]).await,
            "cr-1",
            "what has ended is left out"
        );

        assert_eq!((reservations.left("cr-1"), reservations.left("cr-9")), (2, 0));
        reservations.launched("cr-1");
        assert_eq!(reservations.left("cr-1"), 1);
        reservations.terminated("cr-1");
        reservations.terminated("cr-9");
        assert_eq!((reservations.left("cr-1"), reservations.left("cr-9")), (2, 0));
        reservations.exhausted("cr-1");
        reservations.launched("cr-1");
        assert_eq!(reservations.left("cr-1"), 0);
        tokio::time::advance(std::time::Duration::from_secs(61)).await;
        ids(&[term(Some("cr-1"), None, None)]).await;
        assert_eq!(reservations.left("cr-1"), 2, "EC2 knows better");
    }

    /// AW24.4.8
    #[test]
    fn capacity_blocks_expire_before_their_end() {
        let now = Timestamp::UNIX_EPOCH;
        let in_minutes = |minutes: i64| now.checked_add(SignedDuration::from_mins(minutes)).unwrap();
        let state = |kind: &str, minutes: i64| {
            let status = to_status(&info("cr-1", kind, Some(in_minutes(minutes))), now).unwrap();
            (status.reservation_type.unwrap(), status.state.unwrap())
        };
        use {ReservationState as State, ReservationType as Kind};
        assert_eq!(state("capacity-block", 41), (Kind::CapacityBlock, State::Active));
        assert_eq!(state("capacity-block", 40), (Kind::CapacityBlock, State::Expiring));
        assert_eq!(state("default", 1), (Kind::Default, State::Active));
        assert_eq!(state("", 1), (Kind::Default, State::Active));
        assert!(to_status(&info("cr-1", "new-kind", None), now).is_err());
        let odd = ReservationInfo {
            match_criteria: "other".to_owned(),
            ..info("cr-1", "default", None)
        };
        assert!(to_status(&odd, now).is_err());
    }
}
