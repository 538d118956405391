//! The names that Karpenter writes and reads: labels, annotations, taints, finalizers.

/// The domain of Karpenter's own names.
pub const DOMAIN: &str = "karpenter.sh";
/// The domain of the AWS provider's names.
pub const AWS_DOMAIN: &str = "karpenter.k8s.aws";
/// The domain of the simulated provider's names.
pub const KWOK_DOMAIN: &str = "karpenter.kwok.sh";

pub use model::vocabulary::{
    ARCH, CAPACITY_TYPE, HOSTNAME, INITIALIZED, INSTANCE_TYPE, NODEPOOL as NODE_POOL, OS, REGION, REGISTERED,
    WINDOWS_BUILD, ZONE, normalized_key as normalized,
};

/// On a node with the value `true`: its taints are not taken from the claim at registration.
pub const DO_NOT_SYNC_TAINTS: &str = "karpenter.sh/do-not-sync-taints";

/// The name of the Provisioner, on nodes, machines and claims that come from one.
pub const PROVISIONER_NAME: &str = "karpenter.sh/provisioner-name";

/// Names on objects that were converted from those of an earlier generation.
pub mod compatibility {
    /// Label of an object that follows its source. Without it the object is its owner's alone.
    pub const MANAGED: &str = "compatibility.karpenter.sh/managed";
    /// The value of [`MANAGED`].
    pub const LEGACY: &str = "legacy";
    /// Annotation: kind and name of the object that this one was converted from.
    pub const SOURCE: &str = "compatibility.karpenter.sh/source";
    /// Annotation: hash of the source's spec at the last conversion.
    pub const SOURCE_HASH: &str = "compatibility.karpenter.sh/source-hash";
    /// Annotation of a claim: the instance that it takes over instead of launching one.
    pub const ADOPTS: &str = "compatibility.karpenter.sh/adopts";
    /// Annotation of a node that was made before its kubelet reported.
    pub const PRE_REGISTERED: &str = "compatibility.karpenter.sh/pre-registered";
    /// Annotation of a class: the launch template that is used instead of a generated one.
    pub const LAUNCH_TEMPLATE: &str = "compatibility.karpenter.k8s.aws/launch-template";
}

/// The values of [`CAPACITY_TYPE`].
pub mod capacity_type {
    pub const ON_DEMAND: &str = "on-demand";
    pub const SPOT: &str = "spot";
    pub const RESERVED: &str = "reserved";

    pub const ALL: &[&str] = &[ON_DEMAND, SPOT, RESERVED];
}

/// Annotation keys.
pub mod annotations {
    /// On a pod: `true` or a duration. On a node or claim: `true`.
    pub const DO_NOT_DISRUPT: &str = "karpenter.sh/do-not-disrupt";
    /// On a pod, of the time of Provisioners: what do-not-disrupt is now.
    pub const DO_NOT_EVICT: &str = "karpenter.sh/do-not-evict";
    /// On a node, of the time of Provisioners: it is not consolidated.
    pub const DO_NOT_CONSOLIDATE: &str = "karpenter.sh/do-not-consolidate";
    pub const NODE_POOL_HASH: &str = "karpenter.sh/nodepool-hash";
    pub const NODE_POOL_HASH_VERSION: &str = "karpenter.sh/nodepool-hash-version";
    /// RFC 3339 time at which the termination of a claim is forced.
    pub const TERMINATION_TIMESTAMP: &str = "karpenter.sh/nodeclaim-termination-timestamp";
    pub const MIN_VALUES_RELAXED: &str = "karpenter.sh/nodeclaim-min-values-relaxed";
    pub const REQUESTED_DRA_DRIVERS: &str = "karpenter.sh/requested-dra-drivers";
    pub const PRICE_OVERLAY_APPLIED: &str = "karpenter.sh/price-overlay-applied";
    pub const CAPACITY_OVERLAY_APPLIED: &str = "karpenter.sh/capacity-overlay-applied";
    pub const BUFFER_FAKE_POD: &str = "karpenter.sh/capacity-buffer-fake-pod";
    pub const BUFFER_NAME: &str = "karpenter.sh/capacity-buffer-name";
    pub const BUFFER_NAMESPACE: &str = "karpenter.sh/capacity-buffer-namespace";

    pub const EC2_NODE_CLASS_HASH: &str = "karpenter.k8s.aws/ec2nodeclass-hash";
    pub const EC2_NODE_CLASS_HASH_VERSION: &str = "karpenter.k8s.aws/ec2nodeclass-hash-version";
    pub const INSTANCE_PROFILE_NAME: &str = "karpenter.k8s.aws/instance-profile-name";
    pub const TAGGED: &str = "karpenter.k8s.aws/tagged";
    pub const CLUSTER_NAME_TAGGED: &str = "compatibility.karpenter.k8s.aws/cluster-name-tagged";
}

/// Finalizers.
pub mod finalizers {
    /// On node claims and nodes.
    pub const TERMINATION: &str = "karpenter.sh/termination";
    /// On EC2 node classes, while claims refer to them.
    pub const EC2_NODE_CLASS: &str = "karpenter.k8s.aws/termination";
}

/// Taint keys.
pub mod taints {
    pub use model::taint::{DISRUPTED, NOT_READY, UNREGISTERED};
    use model::{Effect, Taint};

    /// Whether a taint belongs to the first minutes of any node and goes away by itself.
    pub fn is_known_ephemeral(key: &str, effect: &str) -> bool {
        effect
            .parse::<Effect>()
            .is_ok_and(|effect| Taint::new(key, "", effect).is_ephemeral())
    }
}

/// Labels of the AWS provider.
pub mod aws {
    pub const NODE_CLASS: &str = "karpenter.k8s.aws/ec2nodeclass";
    pub const ZONE_ID: &str = "topology.k8s.aws/zone-id";

    pub const INSTANCE_CATEGORY: &str = "karpenter.k8s.aws/instance-category";
    pub const INSTANCE_GENERATION: &str = "karpenter.k8s.aws/instance-generation";
    pub const INSTANCE_FAMILY: &str = "karpenter.k8s.aws/instance-family";
    pub const INSTANCE_SIZE: &str = "karpenter.k8s.aws/instance-size";
    pub const INSTANCE_CAPABILITY_FLEX: &str = "karpenter.k8s.aws/instance-capability-flex";
    pub const INSTANCE_HYPERVISOR: &str = "karpenter.k8s.aws/instance-hypervisor";
    pub const INSTANCE_CPU: &str = "karpenter.k8s.aws/instance-cpu";
    pub const INSTANCE_MEMORY: &str = "karpenter.k8s.aws/instance-memory";
    pub const INSTANCE_CPU_MANUFACTURER: &str = "karpenter.k8s.aws/instance-cpu-manufacturer";
    pub const INSTANCE_CPU_CLOCK_SPEED: &str = "karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz";
    pub const INSTANCE_EBS_BANDWIDTH: &str = "karpenter.k8s.aws/instance-ebs-bandwidth";
    pub const INSTANCE_NETWORK_BANDWIDTH: &str = "karpenter.k8s.aws/instance-network-bandwidth";
    pub const INSTANCE_LOCAL_NVME: &str = "karpenter.k8s.aws/instance-local-nvme";
    pub const INSTANCE_GPU_NAME: &str = "karpenter.k8s.aws/instance-gpu-name";
    pub const INSTANCE_GPU_MANUFACTURER: &str = "karpenter.k8s.aws/instance-gpu-manufacturer";
    pub const INSTANCE_GPU_COUNT: &str = "karpenter.k8s.aws/instance-gpu-count";
    pub const INSTANCE_GPU_MEMORY: &str = "karpenter.k8s.aws/instance-gpu-memory";
    pub const INSTANCE_ACCELERATOR_NAME: &str = "karpenter.k8s.aws/instance-accelerator-name";
    pub const INSTANCE_ACCELERATOR_MANUFACTURER: &str = "karpenter.k8s.aws/instance-accelerator-manufacturer";
    pub const INSTANCE_ACCELERATOR_COUNT: &str = "karpenter.k8s.aws/instance-accelerator-count";
    pub const INSTANCE_ENCRYPTION_IN_TRANSIT: &str = "karpenter.k8s.aws/instance-encryption-in-transit-supported";
    pub const NITRO_SANDBOX: &str = "karpenter.k8s.aws/nitro-sandbox";
    pub const INSTANCE_TENANCY: &str = "karpenter.k8s.aws/instance-tenancy";
    pub const CAPACITY_RESERVATION_ID: &str = "karpenter.k8s.aws/capacity-reservation-id";
    pub const CAPACITY_RESERVATION_TYPE: &str = "karpenter.k8s.aws/capacity-reservation-type";
    pub const CAPACITY_RESERVATION_INTERRUPTIBLE: &str = "karpenter.k8s.aws/capacity-reservation-interruptible";
    pub const PLACEMENT_GROUP_ID: &str = "karpenter.k8s.aws/placement-group-id";
    pub const PLACEMENT_GROUP_PARTITION: &str = "karpenter.k8s.aws/placement-group-partition";

    /// The labels that overlays may select on too: facts of the instance type itself.
    pub const INSTANCE_FACTS: &[&str] = &[
        INSTANCE_ENCRYPTION_IN_TRANSIT,
        NITRO_SANDBOX,
        INSTANCE_CATEGORY,
        INSTANCE_HYPERVISOR,
        INSTANCE_FAMILY,
        INSTANCE_GENERATION,
        INSTANCE_LOCAL_NVME,
        INSTANCE_SIZE,
        INSTANCE_CPU,
        INSTANCE_CPU_MANUFACTURER,
        INSTANCE_CPU_CLOCK_SPEED,
        INSTANCE_MEMORY,
        INSTANCE_EBS_BANDWIDTH,
        INSTANCE_NETWORK_BANDWIDTH,
        INSTANCE_GPU_NAME,
        INSTANCE_GPU_MANUFACTURER,
        INSTANCE_GPU_COUNT,
        INSTANCE_GPU_MEMORY,
        INSTANCE_ACCELERATOR_NAME,
        INSTANCE_ACCELERATOR_MANUFACTURER,
        INSTANCE_ACCELERATOR_COUNT,
        INSTANCE_CAPABILITY_FLEX,
    ];

    /// The labels that say how an instance is placed rather than what it is.
    pub const PLACEMENT: &[&str] = &[
        INSTANCE_TENANCY,
        CAPACITY_RESERVATION_TYPE,
        CAPACITY_RESERVATION_ID,
        CAPACITY_RESERVATION_INTERRUPTIBLE,
        PLACEMENT_GROUP_ID,
        PLACEMENT_GROUP_PARTITION,
    ];

    /// The values of [`INSTANCE_TENANCY`].
    pub const TENANCIES: &[&str] = &["default", "dedicated"];
}

/// Labels of the simulated provider.
pub mod kwok {
    pub const NODE_CLASS: &str = "karpenter.kwok.sh/kwoknodeclass";
    pub const INSTANCE_CPU: &str = "karpenter.kwok.sh/instance-cpu";
    pub const INSTANCE_MEMORY: &str = "karpenter.kwok.sh/instance-memory";
    pub const INSTANCE_FAMILY: &str = "karpenter.kwok.sh/instance-family";
    pub const INSTANCE_SIZE: &str = "karpenter.kwok.sh/instance-size";

    pub const WELL_KNOWN: &[&str] = &[INSTANCE_SIZE, INSTANCE_FAMILY, INSTANCE_CPU, INSTANCE_MEMORY];
}
