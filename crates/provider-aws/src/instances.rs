//! The instances of the cluster: looked up and ended in batches, listed all at once.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures::future::join_all;
use parking_lot::RwLock;

use crate::{
    batch::{Batcher, DESCRIBE_INSTANCES, Gathered, TERMINATE_INSTANCES},
    error::AwsError,
    machine,
    ports::{Ec2, Filter, InstanceInfo, InstanceQuery, Tags},
    tags,
};

type Looked = Result<Option<InstanceInfo>, AwsError>;
type Ended = Result<(), AwsError>;

/// Whether an answer from memory will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    Remembered,
    Asked,
}

#[derive(Debug, thiserror::Error)]
pub enum InstanceError {
    /// What a zone that the cluster is shifted out of says cannot be trusted, and neither can what it is told.
    #[error("zone {0} is shifted away; its instances are left alone")]
    ZoneShifted(String),
    #[error("EC2 could not be asked about instance {id}")]
    Aws {
        id: String,
        #[source]
        cause: AwsError,
    },
    #[error("instances could not be listed")]
    List(#[source] AwsError),
    #[error("the provider is stopping")]
    Stopping,
}

/// What has been asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Requested,
    Gone,
}

/// An instance as it was last seen, or as it was ordered.
struct Known {
    info: InstanceInfo,
    /// EC2 has described it. What was ordered is not always what came: groups, reservation and zone may differ.
    is_seen: bool,
}

impl Known {
    fn seen(info: InstanceInfo) -> Self {
        Self { info, is_seen: true }
    }
}

/// Looks instances up and ends them.
pub struct Instances {
    ec2: Arc<dyn Ec2>,
    cluster: String,
    known: RwLock<BTreeMap<String, Known>>,
    describe: Batcher<String, Looked>,
    terminate: Batcher<String, Ended>,
    /// The names of zones that the cluster is shifted out of now.
    shifted_zones: Arc<dyn Fn() -> BTreeSet<String> + Send + Sync>,
}

impl Instances {
    pub fn new(
        ec2: Arc<dyn Ec2>,
        cluster: &str,
        shifted_zones: Arc<dyn Fn() -> BTreeSet<String> + Send + Sync>,
    ) -> Self {
        Self {
            ec2,
            cluster: cluster.to_owned(),
            known: RwLock::default(),
            describe: Batcher::new(DESCRIBE_INSTANCES),
            terminate: Batcher::new(TERMINATE_INSTANCES),
            shifted_zones,
        }
    }

    /// Sends what is gathered. Without it, nothing is answered.
    pub async fn run(&self, observe: impl Fn(&'static str, Gathered)) {
        let (describing, terminating) = (self.ec2.clone(), self.ec2.clone());
        let describe = self.describe.run(
            move |ids| describe_all(describing.clone(), ids),
            |gathered| observe("describe_instances", gathered),
        );
        let terminate = self.terminate.run(
            move |ids| terminate_all(terminating.clone(), ids),
            |gathered| observe("terminate_instances", gathered),
        );
        futures::join!(describe, terminate);
    }

    /// What was last seen of the instance, or what was ordered.
    pub fn remembered(&self, id: &str) -> Option<InstanceInfo> {
        self.known.read().get(id).map(|known| known.info.clone())
    }

    fn is_seen(&self, id: &str) -> bool {
        self.known.read().get(id).is_some_and(|known| known.is_seen)
    }

    fn is_shifted(&self, instance: &InstanceInfo) -> bool {
        (self.shifted_zones)().contains(&instance.zone)
    }

    /// The instance, or `None` once EC2 does not have it any more.
    pub async fn get(&self, id: &str, freshness: Freshness) -> Result<Option<InstanceInfo>, InstanceError> {
        let before = self.remembered(id);
        let will_do = |known: &InstanceInfo| match freshness {
            Freshness::Remembered => self.is_seen(id) || self.is_shifted(known),
            Freshness::Asked => self.is_shifted(known),
        };
        if let Some(known) = before.clone().filter(will_do) {
            return Ok(Some(known));
        }
        let answer = self.describe.ask(String::new(), id.to_owned()).await;
        let looked = answer.ok_or(InstanceError::Stopping)?;
        let found = looked.map_err(|cause| InstanceError::Aws {
            id: id.to_owned(),
            cause,
        })?;
        match (&found, freshness) {
            (Some(instance), _) => {
                self.known.write().insert(id.to_owned(), Known::seen(instance.clone()));
                Ok(found)
            }
            // EC2 may not show for some seconds what it has just launched; what was ordered is the best guess until then.
            (None, Freshness::Remembered) if before.is_some() => Ok(before),
            (None, _) => {
                self.known.write().remove(id);
                Ok(None)
            }
        }
    }

    /// Takes note of an instance that was just ordered.
    pub fn launched(&self, info: InstanceInfo) {
        let ordered = Known { is_seen: false, info };
        self.known.write().insert(ordered.info.id.clone(), ordered);
    }

    /// Every instance of the cluster that is not gone, those that are ending included.
    pub async fn list(&self) -> Result<Vec<InstanceInfo>, InstanceError> {
        let query = InstanceQuery {
            ids: Vec::new(),
            filters: vec![
                Filter::new("tag-key", [tags::NODE_POOL]),
                Filter::new("tag-key", [tags::NODE_CLASS]),
                Filter::tag(tags::CLUSTER_NAME, &self.cluster),
                states(),
            ],
        };
        let listed = self.ec2.instances(&query).await.map_err(InstanceError::List)?;
        let shifted = (self.shifted_zones)();
        let mut known = self.known.write();
        // A shifted zone may be missing from the list; what is remembered of it stays.
        known.retain(|_, known| shifted.contains(&known.info.zone));
        for instance in &listed {
            known.insert(instance.id.clone(), Known::seen(instance.clone()));
        }
        Ok(listed)
    }

    /// Asks for the end of an instance, until nothing is left of it.
    pub async fn end(&self, id: &str) -> Result<Ending, InstanceError> {
        let Some(instance) = self.get(id, Freshness::Asked).await? else {
            return Ok(Ending::Gone);
        };
        if self.is_shifted(&instance) {
            return Err(InstanceError::ZoneShifted(instance.zone));
        }
        if machine::is_ending(&instance) {
            return Ok(Ending::Requested);
        }
        let ended = self.terminate.ask(String::new(), id.to_owned()).await;
        match ended.ok_or(InstanceError::Stopping)? {
            Ok(()) => Ok(Ending::Requested),
            Err(error) if error.is_not_found() => Ok(Ending::Gone),
            Err(cause) => Err(InstanceError::Aws {
                id: id.to_owned(),
                cause,
            }),
        }
    }

    /// Adds tags. `false` when there is no such instance any more.
    pub async fn tag(&self, id: &str, tags: &Tags) -> Result<bool, InstanceError> {
        if let Some(known) = self.remembered(id)
            && self.is_shifted(&known)
        {
            return Err(InstanceError::ZoneShifted(known.zone));
        }
        match self.ec2.create_tags(id, tags).await {
            Ok(()) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(cause) => Err(InstanceError::Aws {
                id: id.to_owned(),
                cause,
            }),
        }
    }
}

/// All states but `terminated`.
fn states() -> Filter {
    let states = ["pending", "running", "stopping", "stopped", "shutting-down"];
    Filter::new("instance-state-name", states)
}

fn query(ids: Vec<String>) -> InstanceQuery {
    InstanceQuery {
        ids,
        filters: vec![states()],
    }
}

/// One call for all. One id that EC2 does not know fails the whole call, so that each is asked for alone then. What a call
/// that succeeds leaves out is on record and has ended: the states that are asked for do not include that one.
async fn describe_all(ec2: Arc<dyn Ec2>, ids: Vec<String>) -> Vec<Looked> {
    let distinct: BTreeSet<String> = ids.iter().cloned().collect();
    let answers: BTreeMap<String, Looked> = match ec2.instances(&query(distinct.iter().cloned().collect())).await {
        Ok(found) => found.into_iter().map(|one| (one.id.clone(), Ok(Some(one)))).collect(),
        Err(_) => {
            let alone = distinct.into_iter().map(|id| describe_one(ec2.clone(), id));
            join_all(alone).await.into_iter().collect()
        }
    };
    ids.iter()
        .map(|id| answers.get(id).cloned().unwrap_or(Ok(None)))
        .collect()
}

async fn describe_one(ec2: Arc<dyn Ec2>, id: String) -> (String, Looked) {
    let looked = match ec2.instances(&query(vec![id.clone()])).await {
        Ok(instances) => Ok(instances.into_iter().next()),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    };
    (id, looked)
}

async fn terminate_all(ec2: Arc<dyn Ec2>, ids: Vec<String>) -> Vec<Ended> {
    let distinct: BTreeSet<String> = ids.iter().cloned().collect();
    let all: Vec<String> = distinct.iter().cloned().collect();
    let changes = ec2.terminate_instances(&all).await.unwrap_or_default();
    let ending = changes
        .into_iter()
        .filter(|change| matches!(change.state.as_str(), "shutting-down" | "terminated"));
    let ending: BTreeSet<String> = ending.map(|change| change.id).collect();
    let open = distinct.into_iter().filter(|id| !ending.contains(id));
    let answers: BTreeMap<String, Ended> = join_all(open.map(|id| terminate_one(ec2.clone(), id)))
        .await
        .into_iter()
        .collect();
    ids.iter()
        .map(|id| answers.get(id).cloned().unwrap_or(Ok(())))
        .collect()
}

async fn terminate_one(ec2: Arc<dyn Ec2>, id: String) -> (String, Ended) {
    let ended = ec2.terminate_instances(std::slice::from_ref(&id)).await;
    (id, ended.map(drop))
}

#[cfg(test)]
mod tests;
