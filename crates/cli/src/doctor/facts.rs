//! What the checks know: everything that they need, read once.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use operator::settings::LegacyApis;
use serde_json::Value;

use super::rights;
use crate::reader::{Kind, Reader, Right, Unread};

/// The name of the lease unless a setting says another.
pub const LEASE: &str = "karpenter-leader-election";

pub const DEFINITIONS: Kind = Kind::new(
    "apiextensions.k8s.io",
    "v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
);
pub const DEPLOYMENTS: Kind = Kind::new("apps", "v1", "Deployment", "deployments");
pub const DAEMON_SETS: Kind = Kind::new("apps", "v1", "DaemonSet", "daemonsets");
pub const CONTROLLER_PODS: Kind = Kind::new("", "v1", "Pod", "pods").labelled("app.kubernetes.io/name=karpenter");
pub const DNS_PODS: Kind = Kind::new("", "v1", "Pod", "pods").labelled("k8s-app=kube-dns");
pub const LEASES: Kind =
    Kind::new("coordination.k8s.io", "v1", "Lease", "leases").selected("metadata.name=karpenter-leader-election");
pub const AWS_AUTH: Kind = Kind::new("", "v1", "ConfigMap", "configmaps").selected("metadata.name=aws-auth");
pub const GLOBAL_SETTINGS: Kind =
    Kind::new("", "v1", "ConfigMap", "configmaps").selected("metadata.name=karpenter-global-settings");
pub const SERVICES: Kind = Kind::new("", "v1", "Service", "services");
pub const VALIDATING: Kind = Kind::new(
    "admissionregistration.k8s.io",
    "v1",
    "ValidatingWebhookConfiguration",
    "validatingwebhookconfigurations",
);
pub const MUTATING: Kind = Kind::new(
    "admissionregistration.k8s.io",
    "v1",
    "MutatingWebhookConfiguration",
    "mutatingwebhookconfigurations",
);
pub const POOLS: Kind = Kind::new("karpenter.sh", "v1", "NodePool", "nodepools");
pub const CLAIMS: Kind = Kind::new("karpenter.sh", "v1", "NodeClaim", "nodeclaims");
pub const OVERLAYS: Kind = Kind::new("karpenter.sh", "v1alpha1", "NodeOverlay", "nodeoverlays");
pub const BUFFERS: Kind = Kind::new("autoscaling.x-k8s.io", "v1beta1", "CapacityBuffer", "capacitybuffers");
pub const EC2_CLASSES: Kind = Kind::new("karpenter.k8s.aws", "v1", "EC2NodeClass", "ec2nodeclasses");
pub const KWOK_CLASSES: Kind = Kind::new("karpenter.kwok.sh", "v1alpha1", "KWOKNodeClass", "kwoknodeclasses");
pub const MACHINES: Kind = Kind::new("karpenter.sh", "v1alpha5", "Machine", "machines");
pub const NODES: Kind = Kind::new("", "v1", "Node", "nodes");

const ALL: [Kind; 19] = [
    DEFINITIONS,
    DEPLOYMENTS,
    DAEMON_SETS,
    CONTROLLER_PODS,
    DNS_PODS,
    LEASES,
    AWS_AUTH,
    GLOBAL_SETTINGS,
    SERVICES,
    VALIDATING,
    MUTATING,
    POOLS,
    CLAIMS,
    OVERLAYS,
    BUFFERS,
    EC2_CLASSES,
    KWOK_CLASSES,
    MACHINES,
    NODES,
];

/// A lease is renewed every two seconds and lapses after fifteen; a minute allows for clocks that differ.
const LAPSED: SignedDuration = SignedDuration::from_mins(1);

/// The kinds that the charts define.
pub const OUR_KINDS: [Kind; 5] = [POOLS, CLAIMS, OVERLAYS, BUFFERS, EC2_CLASSES];

/// The answers to lists of many kinds.
pub type Objects = BTreeMap<Kind, Result<Vec<Value>, Unread>>;

/// A cluster at one moment.
pub struct Facts {
    pub now: Timestamp,
    /// Whom EKS lets in, where it was asked.
    pub access: Option<Result<Access, String>>,
    pub version: String,
    pub objects: Objects,
    /// What the controller's account may do, of what it has to.
    pub rights: Vec<(Right, Result<bool, Unread>)>,
    /// Whether it may list Provisioners, by which the controller chooses whether to follow them.
    pub lists_provisioners: Result<bool, Unread>,
}

/// The mode of a cluster that has no access entries.
pub const CONFIG_MAP: &str = "CONFIG_MAP";

/// How EKS lets nodes join.
#[derive(Debug, Default)]
pub struct Access {
    /// Where it is written who may join: `API`, `CONFIG_MAP` or `API_AND_CONFIG_MAP`.
    pub mode: String,
    /// The access entries of the roles of nodes, by the role's name.
    pub entries: BTreeMap<String, AccessEntry>,
}

#[derive(Debug)]
pub struct AccessEntry {
    pub kind: String,
    pub groups: Vec<String>,
}

/// Asks for everything. Only a cluster that does not answer at all is an error; what cannot be read is a fact like others.
pub async fn observe(reader: &dyn Reader, now: Timestamp) -> Result<Facts, Unread> {
    let version = reader.version().await?;
    let objects = lists(reader, &ALL).await;
    let mut facts = Facts {
        now,
        access: None,
        version,
        objects,
        rights: Vec::new(),
        lists_provisioners: Err(Unread::Failed("there is no account to ask about".to_owned())),
    };
    if let Some(account) = facts.account() {
        facts.lists_provisioners = reader.may(&account.user(), &rights::list_provisioners()).await;
        for right in rights::needed(&account) {
            let answer = reader.may(&account.user(), &right).await;
            // Whoever may not ask once may not ask seventy times.
            let refused = matches!(answer, Err(Unread::Forbidden(_)));
            facts.rights.push((right, answer));
            if refused {
                break;
            }
        }
    }
    Ok(facts)
}

/// Asks for all objects of these kinds.
pub async fn lists(reader: &dyn Reader, kinds: &[Kind]) -> Objects {
    let mut objects = Objects::new();
    for kind in kinds {
        objects.insert(*kind, reader.list(kind).await);
    }
    objects
}

/// Whom the controller acts as, and by which lease.
pub struct Account {
    pub namespace: String,
    pub name: String,
    pub lease: String,
    pub lease_namespace: String,
}

impl Account {
    fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }
}

impl Facts {
    pub fn of(&self, kind: Kind) -> &[Value] {
        match self.objects.get(&kind) {
            Some(Ok(objects)) => objects,
            _ => &[],
        }
    }

    /// Why a kind is not known, where that is not because the cluster does without it.
    pub fn unread(&self, kind: Kind) -> Option<&Unread> {
        let answer = self.objects.get(&kind)?;
        answer.as_ref().err().filter(|why| **why != Unread::Absent)
    }

    /// Deployments that run Karpenter: by the chart's label, by upstream's image, or by a variable that every chart writes and
    /// nobody else needs.
    pub fn controllers(&self) -> impl Iterator<Item = &Value> {
        let is_karpenter = |container: &Value| {
            text(container, "/image").contains("karpenter/controller")
                || variable(container, "KARPENTER_SERVICE").is_some()
        };
        self.of(DEPLOYMENTS).iter().filter(move |deployment| {
            text(deployment, "/metadata/labels/app.kubernetes.io~1name") == "karpenter"
                || containers(deployment).any(is_karpenter)
        })
    }

    /// Whether somebody is there to act on objects: in this cluster, or from outside, as a lease that is renewed tells.
    pub fn is_controlled(&self) -> bool {
        let ready = |deployment: &Value| deployment.pointer("/status/readyReplicas").and_then(Value::as_i64);
        self.controllers()
            .any(|deployment| ready(deployment).unwrap_or_default() > 0)
            || self.of(LEASES).iter().any(|lease| self.is_held(lease))
    }

    /// Whether somebody has this lease and renews it.
    pub fn is_held(&self, lease: &Value) -> bool {
        !text(lease, "/spec/holderIdentity").is_empty() && self.since(text(lease, "/spec/renewTime")) <= LAPSED
    }

    /// The variable of a controller that the chart, or somebody like it, has deployed; the first of them counts.
    pub fn setting(&self, name: &str) -> Option<&str> {
        self.controllers()
            .flat_map(containers)
            .find_map(|container| variable(container, name))
    }

    /// Whether objects of the time of Provisioners are acted upon, by the controller's own rule. `Err` says why that cannot be
    /// told.
    pub fn follows_older_kinds(&self) -> Result<bool, String> {
        if let Some(why) = self.unread(DEPLOYMENTS) {
            return Err(format!("deployments cannot be read: {why}"));
        }
        if self.controllers().next().is_none() {
            return match self.is_controlled() {
                true => Err("the controller runs outside of the cluster".to_owned()),
                false => Ok(false),
            };
        }
        match LegacyApis::of(self.setting("LEGACY_APIS").unwrap_or_default()) {
            Some(LegacyApis::On) => Ok(true),
            Some(LegacyApis::Off) | None => Ok(false),
            Some(LegacyApis::Auto) => self.has_provisioners_to_follow(),
        }
    }

    fn has_provisioners_to_follow(&self) -> Result<bool, String> {
        if let Some(why) = self.unread(DEFINITIONS) {
            return Err(format!("definitions cannot be read: {why}"));
        }
        let may_list = self.lists_provisioners.as_ref();
        match self.serves_provisioners() {
            true => may_list.copied().map_err(|why| {
                format!("the API server does not say whether the controller may list provisioners: {why}")
            }),
            false => Ok(false),
        }
    }

    fn serves_provisioners(&self) -> bool {
        let mut definitions = self.of(DEFINITIONS).iter();
        let found = definitions.find(|found| text(found, "/metadata/name") == "provisioners.karpenter.sh");
        let versions = found.map_or(&[][..], |found| list(found, "/spec/versions"));
        let mut versions = versions.iter();
        versions.any(|version| version["name"] == "v1alpha5" && version["served"] == true)
    }

    fn account(&self) -> Option<Account> {
        let controller = self.controllers().next()?;
        let name = text(controller, "/spec/template/spec/serviceAccountName");
        let namespace = text(controller, "/metadata/namespace");
        let set = |name| self.setting(name).filter(|value| !value.is_empty());
        Some(Account {
            namespace: namespace.to_owned(),
            name: if name.is_empty() { "default" } else { name }.to_owned(),
            lease: set("LEADER_ELECTION_NAME").unwrap_or(LEASE).to_owned(),
            lease_namespace: set("LEADER_ELECTION_NAMESPACE").unwrap_or(namespace).to_owned(),
        })
    }

    /// For how long an object has been there.
    pub fn age(&self, object: &Value) -> SignedDuration {
        self.since(text(object, "/metadata/creationTimestamp"))
    }

    /// The time that has passed since a moment; none when it is not told.
    pub fn since(&self, moment: &str) -> SignedDuration {
        let moment: Option<Timestamp> = moment.parse().ok();
        moment.map_or(SignedDuration::ZERO, |moment| self.now.duration_since(moment))
    }
}

/// The text at a place, empty where there is none.
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// What a role is called, of its ARN or of its name with or without a path.
pub fn role_name(role: &str) -> &str {
    role.rsplit('/').next().unwrap_or(role)
}

pub fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object
        .pointer(pointer)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// `kind/name`, or `kind/namespace/name`, as people type it.
pub fn called(object: &Value) -> String {
    let kind = text(object, "/kind").to_lowercase();
    let name = text(object, "/metadata/name");
    match text(object, "/metadata/namespace") {
        "" => format!("{kind}/{name}"),
        namespace => format!("{kind}/{namespace}/{name}"),
    }
}

pub fn containers(deployment: &Value) -> impl Iterator<Item = &Value> {
    list(deployment, "/spec/template/spec/containers").iter()
}

/// What a container is told by a variable; empty where it is to be found elsewhere.
pub fn variable<'a>(container: &'a Value, name: &str) -> Option<&'a str> {
    let variables = list(container, "/env").iter();
    let set = variables.into_iter().find(|variable| variable["name"] == name)?;
    Some(text(set, "/value"))
}

/// A condition's status, reason and message.
pub struct Condition<'a> {
    pub status: &'a str,
    pub reason: &'a str,
    pub message: &'a str,
    pub since: &'a str,
}

pub fn condition<'a>(object: &'a Value, wanted: &str) -> Option<Condition<'a>> {
    let conditions = list(object, "/status/conditions").iter();
    let found = conditions.into_iter().find(|condition| condition["type"] == wanted)?;
    Some(Condition {
        status: text(found, "/status"),
        reason: text(found, "/reason"),
        message: text(found, "/message"),
        since: text(found, "/lastTransitionTime"),
    })
}

pub fn is_deleting(object: &Value) -> bool {
    object
        .pointer("/metadata/deletionTimestamp")
        .is_some_and(|moment| !moment.is_null())
}
