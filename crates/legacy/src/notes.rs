//! What a conversion has to say besides its result: where meaning changes, and where it would be lost.

use std::fmt;

/// The object that a note is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subject {
    /// Where the object stands, such as `pools.yaml, document 2`; may be empty.
    pub place: String,
    /// `Provisioner default`.
    pub object: String,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let comma = if self.place.is_empty() { "" } else { ", " };
        write!(f, "{}{comma}{}", self.place, self.object)
    }
}

/// A change of meaning that the user should know of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    pub subject: Subject,
    /// The field of the source; empty for the object as a whole.
    pub field: String,
    pub change: Change,
}

impl Warning {
    /// The warning without its object, for a comment that stands beside it.
    pub fn comment(&self) -> String {
        format!("{}{}", path(&self.field), self.change)
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}{}", self.subject, path(&self.field), self.change)
    }
}

/// A reason not to convert.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{subject}: {}{reason}", path(field))]
pub struct Refusal {
    pub subject: Subject,
    pub field: String,
    pub reason: Reason,
}

impl Refusal {
    /// The refusal without its object, for whoever is told beside the object.
    pub fn problem(&self) -> String {
        format!("{}{}", path(&self.field), self.reason)
    }
}

fn path(field: &str) -> String {
    if field.is_empty() {
        String::new()
    } else {
        format!("{field}: ")
    }
}

/// How meaning changes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Change {
    #[error(
        "an expired node is drained at once, without waiting for a replacement; the time is copied into each node claim when it is made"
    )]
    ExpiryIsForceful,
    #[error("zero seconds: every node expires at once")]
    ExpiresAtOnce,
    #[error(
        "nodes that differ from their pool or class are replaced; this can be slowed by budgets but not be switched off"
    )]
    DriftIsOn,
    #[error("pods are placed by kube-scheduler; nobody binds them to forthcoming nodes")]
    PodsAreNotBound,
    #[error("what admission used to add is written down: {keys}")]
    DefaultsFrozen { keys: String },
    #[error(
        "the hop limit of 2 that was the default is written down; v1 would make it 1 and keep pods from instance metadata"
    )]
    HopLimitWritten,
    #[error("becomes {to}, which blocks every voluntary disruption and not consolidation alone")]
    Widens { to: &'static str },
    #[error("{key:?} is left out: {why}")]
    RequirementRemoved { key: String, why: &'static str },
    #[error("both this and ttlSecondsAfterEmpty are set; consolidation wins")]
    ConsolidationWins,
    #[error("the empty value of {key:?} becomes \"*\", any value")]
    EmptyValueMatchesAny { key: String },
    #[error("the cluster's tag is written down, which was the default before 0.5.5")]
    ClusterTagWritten,
    #[error("tag {key:?} is left out: Karpenter sets it itself, or it belongs to an older release")]
    TagRemoved { key: String },
    #[error("{alias} rolls nodes on every release of the image; pin a version to decide yourself")]
    ImagesRoll { alias: String },
    #[error("AL2 images are not published for Kubernetes 1.33 and newer; plan the move to al2023")]
    Al2Ends,
    #[error("tags of an image no longer act as requirements on the nodes that it is used for")]
    ImageTagsAreNoRequirements,
    #[error("no role and no instance profile is known; replace {placeholder} (envsubst does) or give --node-role")]
    RolePlaceholder { placeholder: &'static str },
    #[error("no cluster name is known; replace {placeholder} (envsubst does) or give --cluster-name")]
    ClusterPlaceholder { placeholder: &'static str },
    #[error(
        "nodes have to register with the taint karpenter.sh/unregistered:NoExecute, which this user data has to see to"
    )]
    UserDataNeedsTaint,
    #[error(
        "kubelet settings belong to the class now; they differ between the pools of {class}, so {copy} is made for {pools}"
    )]
    KubeletSplit { class: String, copy: String, pools: String },
    #[error("{from} becomes {to}: v1 takes whole Gi only")]
    SizeRounded { from: String, to: String },
    #[error("ENI-limited pod density was off, which is a pod limit of 110 now")]
    DensityWritten,
    #[error("not part of the schema and without effect; left out")]
    FieldUnknown,
    #[error("left out: {why}")]
    Dropped { why: &'static str },
    #[error("left out on demand: {to} has no such field")]
    Forced { to: &'static str },
    #[error("set {setting} of the controller to {value:?}")]
    SettingNeeded { setting: &'static str, value: String },
    #[error("{from} becomes 0s: v1beta1 consolidates underutilized nodes without delay")]
    DelayLost { from: String },
    #[error("weighing savings against disruption is newer than v1beta1; becomes WhenUnderutilized")]
    BalanceLost,
    #[error("Ubuntu is not a family any more; becomes AL2 with the given images")]
    UbuntuBecomesAl2,
    #[error("Ubuntu without image terms cannot launch with v1; the class stands by until it selects images")]
    UbuntuWithoutImages,
    #[error("a {kind} is state of a running cluster, not configuration; apply it only where you restore one")]
    IsState { kind: &'static str },
    #[error("its pool is not among the objects, so expireAfter is left to the default of 720h")]
    PoolUnknown,
    #[error(
        "the chart no longer makes a default Provisioner; its NodePool and EC2NodeClass follow as objects of their own"
    )]
    ProvisionerLeavesChart,
    #[error(
        "the chart passes no objects on; they follow as documents of their own, and the upgrade deletes the old ones unless kubectl has annotated them with helm.sh/resource-policy=keep"
    )]
    ObjectsLeaveChart,
    #[error("the controller reads environment variables instead of this ConfigMap; name it in controller.envFrom")]
    SettingsAreEnvironment,
    #[error("launch template {name} is taken apart; later versions of it have no effect")]
    LaunchTemplateResolved { name: String },
    #[error(
        "launch template {name} is named by an annotation that only this project's controller reads; labels and taints do not reach its user data; with --launch-template resolve its content moves into the class"
    )]
    LaunchTemplateKept { name: String },
}

/// Why something is not converted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    #[error("{problem}")]
    Unreadable { problem: String },
    #[error("{problem}")]
    Invalid { problem: String },
    #[error("cannot convert with \"spec.launchTemplate\"")]
    LaunchTemplate,
    #[error(
        "launch template {name} is not described; add the output of aws ec2 describe-launch-template-versions to the input"
    )]
    LaunchTemplateUnknown { name: String },
    #[error("launch template {name}: {problem}")]
    LaunchTemplateUnfit { name: String, problem: String },
    #[error("selects nothing; releases before 0.5.5 took the cluster's tag, for which --cluster-name is needed")]
    NoSelector,
    #[error("the cluster is called {found:?} here and {given:?} elsewhere")]
    ClusterNameDiffers { found: String, given: String },
    #[error("the cluster's name is needed: give --cluster-name")]
    ClusterNameNeeded,
    #[error("{count} {what}; v1 allows {most}")]
    TooMany {
        count: usize,
        what: &'static str,
        most: usize,
    },
    #[error("{to} has no such field, and its meaning would be lost; --force leaves it out")]
    WouldBeLost { to: &'static str },
    #[error("belongs to the class now, but class {class} is not among the objects; --force leaves it out")]
    KubeletWithoutClass { class: String },
    #[error("belongs to the pools in v1beta1, but no pool of this class is among the objects; --force leaves it out")]
    KubeletWithoutPool,
    #[error("two objects would be called {object}")]
    NameTaken { object: String },
    #[error("no node class is known for it: neither a reference nor its pool is among the objects")]
    ClassUnknown,
    #[error("v1alpha1 and v1alpha2 Provisioners have no way to v1")]
    TooOld,
}

impl Reason {
    /// Whether another object could answer it, one that is not there yet or not looked at.
    pub fn is_about_others(&self) -> bool {
        matches!(
            self,
            Reason::LaunchTemplateUnknown { .. }
                | Reason::KubeletWithoutClass { .. }
                | Reason::KubeletWithoutPool
                | Reason::NameTaken { .. }
                | Reason::ClassUnknown
        )
    }
}

/// Collects notes on one object.
#[derive(Debug)]
pub struct Notes {
    pub subject: Subject,
    pub warnings: Vec<Warning>,
    pub refusals: Vec<Refusal>,
}

impl Notes {
    pub fn on(subject: Subject) -> Self {
        Self {
            subject,
            warnings: Vec::new(),
            refusals: Vec::new(),
        }
    }

    /// Says a thing once, however often it comes up.
    pub fn warn(&mut self, field: impl Into<String>, change: Change) {
        let warning = Warning {
            subject: self.subject.clone(),
            field: field.into(),
            change,
        };
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    pub fn refuse(&mut self, field: impl Into<String>, reason: Reason) {
        self.refusals.push(Refusal {
            subject: self.subject.clone(),
            field: field.into(),
            reason,
        });
    }

    pub fn invalid(&mut self, field: impl Into<String>, problem: impl fmt::Display) {
        let problem = problem.to_string();
        self.refuse(field, Reason::Invalid { problem });
    }

    /// A field that the target does not have: a loss, unless the user accepts it.
    pub fn lose(&mut self, field: impl Into<String>, to: &'static str, force: bool) {
        if force {
            self.warn(field, Change::Forced { to });
        } else {
            self.refuse(field, Reason::WouldBeLost { to });
        }
    }
}
