//! Watches, index and controllers, put together. No sockets and no lease in here: this is what simulations run, too.

use std::{fmt::Debug, sync::Arc};

use api::{
    Stored,
    aws::AwsNodeTemplate,
    v1::{NodeClaim, NodePool},
    v1alpha1::NodeOverlay,
    v1alpha5::{Machine, Provisioner},
    v1beta1::CapacityBuffer,
};
use clock::Clock;
use controllers::{
    Ctx, Features, Knobs,
    catalog::Shelves,
    fleet::{self, Fleet},
    metrics::Metrics,
    node_pool::registration_health::Health,
    outbox::Outbox,
    provisioning::promises::Promises,
    static_capacity::Slots,
    writer::Writer,
};
use controllers_legacy::Place;
use k8s_openapi::api::{
    apps::v1::{DaemonSet, ReplicaSet, StatefulSet},
    core::v1::{
        ConfigMap, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, PodTemplate, ReplicationController,
        Service,
    },
    policy::v1::PodDisruptionBudget,
    resource::v1::{DeviceClass, ResourceClaim, ResourceSlice},
    storage::v1::{CSINode, StorageClass, VolumeAttachment},
};
use kube::{
    Api, Client,
    core::{DynamicObject, GroupVersionKind},
    discovery::ApiResource,
};
use provider::CloudProvider;
use scheduler::Options;
use serde::de::DeserializeOwned;
use state::{Feed, FeedPace, Index, Indexed, Served};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::{
    legacy::Legacy,
    settings::{LegacyApis, Settings},
};

/// Where the chart installs, and so where the settings of the time of Provisioners were.
const DEFAULT_NAMESPACE: &str = "kube-system";

/// All that the controllers need from outside.
#[derive(Clone)]
pub struct Engine {
    pub client: Client,
    pub cloud: Arc<dyn CloudProvider>,
    pub clock: Arc<dyn Clock>,
    pub settings: Arc<Settings>,
    /// Names of claims follow from it. Two processes that may work on one cluster must not share a seed.
    pub seed: u64,
}

/// Controllers that are ready to run, and the windows into them.
pub struct Running {
    pub index: Arc<Index>,
    pub metrics: Arc<Metrics>,
    tasks: JoinSet<()>,
}

/// A task of the engine ended although nobody asked it to: its code panicked.
#[derive(Debug, thiserror::Error)]
#[error("a controller broke down")]
pub struct Broken(#[source] Option<tokio::task::JoinError>);

impl Engine {
    /// Starts all watches and controllers. They stop when what is returned is dropped.
    pub fn start(&self) -> Running {
        self.start_with(|_| ())
    }

    /// As [`start`](Self::start), with controllers that only the provider at hand has. Objects of the time of Provisioners
    /// are followed where the settings say so: nobody is asked here.
    pub fn start_with(&self, join: impl FnOnce(&mut Fleet)) -> Running {
        let legacy = (self.settings.legacy_apis == LegacyApis::On).then(|| Legacy {
            place: Place::default(),
            namespace: DEFAULT_NAMESPACE.to_owned(),
        });
        self.start_beside(legacy, join)
    }

    /// As [`start_with`](Self::start_with), for somebody who has found out about the time of Provisioners.
    pub fn start_beside(&self, legacy: Option<Legacy>, join: impl FnOnce(&mut Fleet)) -> Running {
        let kinds = self.cloud.node_classes();
        let served = Served::new(kinds.iter().map(|kind| (kind.group.to_owned(), kind.kind.to_owned())));
        let index = Arc::new(Index::new(self.cloud.vocabulary(), served));
        let metrics = Arc::new(Metrics::default());
        let writer = Writer::new(self.client.clone(), index.clone());
        let (outbox, postman) = Outbox::new(writer.clone(), self.clock.clone());
        let ctx = Ctx {
            index: index.clone(),
            writer,
            cloud: self.cloud.clone(),
            clock: self.clock.clone(),
            outbox,
            metrics: metrics.clone(),
            knobs: Arc::new(Knobs {
                old_words: legacy.is_some(),
                ..knobs(&self.settings)
            }),
            health: Arc::new(Health::default()),
            shelves: Arc::new(Shelves::default()),
            slots: Arc::new(Slots::default()),
            promises: Arc::new(Promises::default()),
            random: Ctx::seeded(self.seed),
        };

        let mut tasks = JoinSet::new();
        // The controllers subscribe before the first list arrives, so that they miss nothing.
        let place = legacy.as_ref().map(|legacy| legacy.place.clone());
        let join = |fleet: &mut Fleet| {
            place
                .into_iter()
                .for_each(|place| controllers_legacy::join(fleet, place));
            join(fleet);
        };
        for task in fleet::all(&ctx, join) {
            tasks.spawn(task.run);
        }
        tasks.spawn(postman.run());
        self.feed::<NodePool>(&index, &mut tasks);
        self.feed::<NodeClaim>(&index, &mut tasks);
        self.feed::<Node>(&index, &mut tasks);
        self.feed::<Pod>(&index, &mut tasks);
        self.feed::<DaemonSet>(&index, &mut tasks);
        self.feed::<PodDisruptionBudget>(&index, &mut tasks);
        self.feed::<Namespace>(&index, &mut tasks);
        self.feed::<VolumeAttachment>(&index, &mut tasks);
        self.feed::<PersistentVolumeClaim>(&index, &mut tasks);
        if !self.settings.ignore_dra_requests {
            self.feed::<ResourceClaim>(&index, &mut tasks);
            self.feed::<ResourceSlice>(&index, &mut tasks);
            self.feed::<DeviceClass>(&index, &mut tasks);
        }
        // Whom default spreads count is deduced from these; nobody else asks for them.
        if !self.settings.scheduler_config.default_spreads.is_empty() {
            info!(constraints = %self.settings.scheduler_config, "default topology spread constraints");
            self.feed::<Service>(&index, &mut tasks);
            self.feed::<ReplicaSet>(&index, &mut tasks);
            self.feed::<StatefulSet>(&index, &mut tasks);
            self.feed::<ReplicationController>(&index, &mut tasks);
        }
        self.feed::<PersistentVolume>(&index, &mut tasks);
        self.feed::<StorageClass>(&index, &mut tasks);
        self.feed::<CSINode>(&index, &mut tasks);
        let gates = &self.settings.feature_gates;
        if gates.capacity_buffer {
            self.optional_feed::<CapacityBuffer>(&index, &mut tasks);
            self.feed::<PodTemplate>(&index, &mut tasks);
        }
        if gates.node_overlay {
            self.optional_feed::<NodeOverlay>(&index, &mut tasks);
        }
        if let Some(legacy) = &legacy {
            self.optional_feed::<Stored<Provisioner>>(&index, &mut tasks);
            self.optional_feed::<Stored<AwsNodeTemplate>>(&index, &mut tasks);
            self.optional_feed::<Stored<Machine>>(&index, &mut tasks);
            let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), &legacy.namespace);
            let settings =
                Feed::new(api, (), index.clone(), FeedPace::default()).only(controllers_legacy::GLOBAL_SETTINGS);
            tasks.spawn(settings.run());
        }
        for kind in kinds {
            let gvk = GroupVersionKind::gvk(kind.group, kind.version, kind.kind);
            let resource = ApiResource::from_gvk_with_plural(&gvk, kind.plural);
            let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
            tasks.spawn(Feed::new(api, resource, index.clone(), FeedPace::default()).run());
        }
        Running { index, metrics, tasks }
    }

    fn feed<K>(&self, index: &Arc<Index>, tasks: &mut JoinSet<()>)
    where
        K: Indexed<DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        let feed = Feed::<K>::new(Api::all(self.client.clone()), (), index.clone(), FeedPace::default());
        tasks.spawn(feed.run());
    }

    fn optional_feed<K>(&self, index: &Arc<Index>, tasks: &mut JoinSet<()>)
    where
        K: Indexed<DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        let api = Api::all(self.client.clone());
        tasks.spawn(Feed::<K>::optional(api, (), index.clone(), FeedPace::default()).run());
    }
}

impl Running {
    /// Waits for the word to stop; a task that ends before it is a failure.
    pub async fn until(mut self, stop: &CancellationToken) -> Result<(), Broken> {
        tokio::select! {
            biased;
            () = stop.cancelled() => Ok(()),
            ended = self.tasks.join_next() => Err(Broken(ended.and_then(Result::err))),
        }
    }
}

fn knobs(settings: &Settings) -> Knobs {
    Knobs {
        batch_idle: settings.batch_idle,
        batch_max: settings.batch_max,
        solver: Options {
            preference_policy: settings.preference_policy,
            min_values_policy: settings.min_values_policy,
            node_surcharge: settings.node_surcharge,
            ignore_dra: settings.ignore_dra_requests,
            reserved_capacity: settings.feature_gates.reserved_capacity,
            default_spreads: settings.scheduler_config.default_spreads.clone(),
            ..Options::default()
        },
        spot_to_spot: settings.feature_gates.spot_to_spot_consolidation,
        node_repair: settings.feature_gates.node_repair,
        observe_cluster: settings.observe_cluster_state,
        features: Features {
            static_capacity: settings.feature_gates.static_capacity,
            capacity_buffer: settings.feature_gates.capacity_buffer,
            node_overlay: settings.feature_gates.node_overlay,
            pre_registration: settings.feature_gates.node_pre_registration,
            proactive_binding: settings.feature_gates.node_pre_registration && settings.feature_gates.proactive_binding,
        },
        ..Knobs::default()
    }
}
