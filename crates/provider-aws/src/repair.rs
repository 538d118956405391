//! Node conditions under which an instance is given up.

use jiff::SignedDuration;
use provider::RepairPolicy;

/// What EKS's monitoring agent and the kubelet report, and how long that may last.
pub fn policies() -> Vec<RepairPolicy> {
    let policy = |condition: &str, status: &str, minutes: i64| RepairPolicy {
        condition: condition.to_owned(),
        status: status.to_owned(),
        toleration: SignedDuration::from_mins(minutes),
    };
    vec![
        policy("Ready", "False", 30),
        policy("Ready", "Unknown", 30),
        // Work on broken accelerators is lost work.
        policy("AcceleratedHardwareReady", "False", 10),
        policy("StorageReady", "False", 30),
        policy("NetworkingReady", "False", 30),
        policy("KernelReady", "False", 30),
        policy("ContainerRuntimeReady", "False", 30),
    ]
}
