//! The placement group of a class.

use std::{collections::BTreeMap, sync::Arc};

use api::aws::PlacementGroupSelector;
use clock::Clock;
use jiff::SignedDuration;
use parking_lot::Mutex;

use crate::{
    cache::Cache,
    error::AwsError,
    ports::{Ec2, PlacementGroupInfo, PlacementGroupQuery},
};

const CHECKED_FOR: SignedDuration = SignedDuration::from_mins(1);

/// What is known about a group. `stale` says why it could not be confirmed just now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resolved {
    pub group: Option<PlacementGroupInfo>,
    pub stale: Option<AwsError>,
}

/// Finds placement groups.
pub struct PlacementGroups {
    ec2: Arc<dyn Ec2>,
    found: Cache<PlacementGroupQuery, Option<PlacementGroupInfo>>,
    last_known: Mutex<BTreeMap<PlacementGroupQuery, Option<PlacementGroupInfo>>>,
}

impl PlacementGroups {
    pub fn new(ec2: Arc<dyn Ec2>, clock: Arc<dyn Clock>) -> Self {
        Self {
            ec2,
            found: Cache::new(clock, CHECKED_FOR),
            last_known: Mutex::default(),
        }
    }

    /// The group that the selector names. When EC2 cannot be asked, what it said last still counts: nodes do not drift
    /// because of a failed request.
    ///
    /// # Errors
    ///
    /// If EC2 cannot be asked and never was.
    pub async fn of(&self, selector: &PlacementGroupSelector) -> Result<Resolved, AwsError> {
        let query = match (&selector.id, &selector.name) {
            (Some(id), _) => PlacementGroupQuery::Id(id.clone()),
            (None, Some(name)) => PlacementGroupQuery::Name(name.clone()),
            (None, None) => return Ok(Resolved::default()),
        };
        let fetch = async {
            match self.ec2.placement_groups(&query).await {
                Ok(groups) => Ok(groups.into_iter().next()),
                Err(error) if error.is_not_found() => Ok(None),
                Err(error) => Err(error),
            }
        };
        match self.found.get_or_fetch(query.clone(), fetch).await {
            Ok(group) => {
                self.last_known.lock().insert(query, group.clone());
                Ok(Resolved { group, stale: None })
            }
            Err(error) => match self.last_known.lock().get(&query).cloned() {
                Some(group) => Ok(Resolved {
                    group,
                    stale: Some(error),
                }),
                None => Err(error),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fake::FakeAws;

    fn group(id: &str, name: &str, strategy: &str) -> PlacementGroupInfo {
        PlacementGroupInfo {
            id: id.to_owned(),
            name: name.to_owned(),
            strategy: strategy.to_owned(),
            partitions: 3,
            spread_level: None,
        }
    }

    fn by(id: Option<&str>, name: Option<&str>) -> PlacementGroupSelector {
        PlacementGroupSelector {
            id: id.map(str::to_owned),
            name: name.map(str::to_owned),
        }
    }

    /// AW24.4.11
    #[tokio::test(start_paused = true)]
    async fn groups_are_found_by_id_or_name_and_remembered_while_ec2_is_away() {
        let aws = FakeAws::new();
        aws.add_placement_group(group("pg-1", "one", "cluster"));
        aws.add_placement_group(group("pg-2", "pg-odd", "partition"));
        let groups = PlacementGroups::new(aws.ports().ec2, aws.clock());
        let id = async |selector| groups.of(&selector).await.unwrap().group.map(|group| group.id);
        assert_eq!(id(by(Some("pg-1"), None)).await.as_deref(), Some("pg-1"));
        assert_eq!(id(by(None, Some("one"))).await.as_deref(), Some("pg-1"));
        assert_eq!(
            id(by(None, Some("pg-odd"))).await.as_deref(),
            Some("pg-2"),
            "a name may look like an id"
        );
        assert_eq!(id(by(None, Some("missing"))).await, None);
        assert_eq!(id(by(None, None)).await, None);

        aws.fail("DescribePlacementGroups", AwsError::new("InternalError", "x"));
        tokio::time::advance(std::time::Duration::from_secs(61)).await;
        let stale = groups.of(&by(Some("pg-1"), None)).await.unwrap();
        assert!(stale.group.is_some() && stale.stale.is_some());
        aws.fail("DescribePlacementGroups", AwsError::new("InternalError", "x"));
        assert!(groups.of(&by(Some("pg-9"), None)).await.is_err());
    }
}
