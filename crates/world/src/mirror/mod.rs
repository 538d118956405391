//! What the simulated components know of the cluster: one copy of every kind they read, fed by list and watch.
//!
//! All components share one mirror, so that a change is decoded once however many components look at it. Each kind has
//! a [`Store`]; [`informer`] keeps it current; every change is told to the listeners in the order in which it arrived.
//! What a component has just written enters by [`Mirror::wrote`], so that it never acts twice on one fact.

pub mod informer;
mod store;

use std::sync::Arc;

use api::v1::{NodeClaim, NodePool};
use k8s_openapi::{
    api::{
        apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet},
        batch::v1::Job,
        core::v1::{Namespace, Node, Pod},
        policy::v1::PodDisruptionBudget,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{Api, Client, Resource};
use serde::{Serialize, de::DeserializeOwned};

pub use store::{Change, Group, Key, Store, controller_of, version_of};

/// A kind of object that the mirror keeps.
pub trait Mirrored:
    Resource<DynamicType = ()> + Clone + std::fmt::Debug + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// Lower-case singular, as timelines and messages write it.
    const NOUN: &'static str;

    fn store(mirror: &Mirror) -> &Store<Self>;

    /// An interface to one namespace; the empty one means all of them, and is what cluster-wide kinds get.
    fn api(client: &Client, namespace: &str) -> Api<Self>;

    fn seen(change: Change<Self>) -> Seen;

    /// What the object can be looked up by, besides its name.
    fn groups(&self) -> Vec<Group> {
        controller_of(self.meta())
            .map(|owner| Group::Controller(owner.uid.clone()))
            .into_iter()
            .collect()
    }
}

macro_rules! mirrored {
    ($($kind:ident, $field:ident, $noun:literal, $scope:ident $(, $groups:item)?;)+) => {
        /// One change of any kind.
        #[derive(Clone, Debug)]
        pub enum Seen {
            $($kind(Change<$kind>),)+
        }

        impl Seen {
            pub fn key(&self) -> &Key {
                match self { $(Seen::$kind(change) => &change.key,)+ }
            }

            /// The resource version at which the cluster became so.
            pub fn version(&self) -> u64 {
                match self { $(Seen::$kind(change) => change.version,)+ }
            }

            pub fn noun(&self) -> &'static str {
                match self { $(Seen::$kind(_) => $kind::NOUN,)+ }
            }

            /// The metadata after the change, or before it when the object is gone.
            pub fn meta(&self) -> &ObjectMeta {
                match self { $(Seen::$kind(change) => change.either().meta(),)+ }
            }

            pub fn is_gone(&self) -> bool {
                match self { $(Seen::$kind(change) => change.new.is_none(),)+ }
            }
        }

        /// See the module's head.
        pub struct Mirror {
            $(pub $field: Store<$kind>,)+
            listeners: Vec<Listener>,
            tap: Option<Tap>,
        }

        impl Mirror {
            /// A mirror that tells these listeners of every change. It is empty until informers run.
            pub fn new(listeners: Vec<Listener>, tap: Option<Tap>) -> Self {
                Self { $($field: Store::default(),)+ listeners, tap }
            }
        }

        $(impl Mirrored for $kind {
            const NOUN: &'static str = $noun;

            fn store(mirror: &Mirror) -> &Store<Self> {
                &mirror.$field
            }

            fn api(client: &Client, namespace: &str) -> Api<Self> {
                mirrored!(@$scope client, namespace)
            }

            fn seen(change: Change<Self>) -> Seen {
                Seen::$kind(change)
            }

            $($groups)?
        })+
    };
    (@cluster $client:ident, $namespace:ident) => {{
        let _ = $namespace;
        Api::all($client.clone())
    }};
    (@namespaced $client:ident, $namespace:ident) => {
        if $namespace.is_empty() { Api::all($client.clone()) } else { Api::namespaced($client.clone(), $namespace) }
    };
}

mirrored! {
    Namespace, namespaces, "namespace", cluster;
    Node, nodes, "node", cluster;
    Pod, pods, "pod", namespaced, fn groups(&self) -> Vec<Group> { store::groups_of_pod(self) };
    Deployment, deployments, "deployment", namespaced;
    ReplicaSet, replica_sets, "replicaset", namespaced;
    StatefulSet, stateful_sets, "statefulset", namespaced;
    DaemonSet, daemon_sets, "daemonset", namespaced;
    Job, jobs, "job", namespaced;
    PodDisruptionBudget, budgets, "poddisruptionbudget", namespaced;
    NodePool, node_pools, "nodepool", cluster;
    NodeClaim, node_claims, "nodeclaim", cluster;
}

impl Seen {
    /// A claim that there is: as it was before this change, if it was there, and as it is now.
    pub fn claim_now(&self) -> Option<(Option<&NodeClaim>, &NodeClaim)> {
        match self {
            Seen::NodeClaim(change) => change.new.as_deref().map(|claim| (change.old.as_deref(), claim)),
            _ => None,
        }
    }
}

/// Called for every change, after the stores have it. Must be quick: it runs inside the informer.
pub type Listener = Box<dyn Fn(&Mirror, &Seen) + Send + Sync>;

/// Given everything that the server tells, whether or not the mirror knew it already from an answer.
pub type Tap = Box<dyn Fn(Told) + Send + Sync>;

/// A lesson that has not been taught yet.
type Lesson = Box<dyn FnOnce(&Mirror) -> Vec<Seen> + Send>;

/// What the server told, for another mirror to learn: one that is to see the whole history in the server's order.
pub struct Told {
    pub version: u64,
    news: Lesson,
}

impl Told {
    pub fn teach(self, mirror: &Mirror) -> Vec<Seen> {
        (self.news)(mirror)
    }
}

/// What a list or a watch says about one kind.
#[derive(Clone, Debug)]
pub enum News<K> {
    /// These and no others, at that version.
    All(Vec<Arc<K>>, u64),
    Put(Arc<K>),
    Gone(Arc<K>),
}

impl<K: Mirrored> News<K> {
    pub fn version(&self) -> u64 {
        match self {
            News::All(_, version) => *version,
            News::Put(object) | News::Gone(object) => version_of(object.meta()),
        }
    }
}

impl Mirror {
    /// Takes over what one of our own requests answered with.
    pub fn wrote<K: Mirrored>(&self, object: K) {
        let change = K::store(self).wrote(Arc::new(object));
        self.tell(change.into_iter());
    }

    /// Takes over what the server told.
    pub fn learn<K: Mirrored>(&self, news: News<K>) -> Vec<Seen> {
        if let Some(tap) = &self.tap {
            let (version, news) = (news.version(), news.clone());
            tap(Told {
                version,
                news: Box::new(move |mirror| mirror.learn(news)),
            });
        }
        let store = K::store(self);
        match news {
            News::All(objects, version) => self.tell(store.listed(objects, version).into_iter()),
            News::Put(object) => self.tell(store.observed(object).into_iter()),
            News::Gone(object) => self.tell(store.vanished(&object).into_iter()),
        }
    }

    fn tell<K: Mirrored>(&self, changes: impl Iterator<Item = Change<K>>) -> Vec<Seen> {
        let seen: Vec<Seen> = changes.map(K::seen).collect();
        for seen in &seen {
            for listener in &self.listeners {
                listener(self, seen);
            }
        }
        seen
    }
}
