//! The kubelet settings of an EC2NodeClass.
//!
//! The rules of the release, without those that would refuse an expression; settings that Karpenter does not understand
//! are kept for the controller to judge (decision record 0006).

use super::schema::{Fact, Schema, cel, description, maximum, minimum, open, pattern, without};

const SIGNALS: &str = "'memory.available','nodefs.available','nodefs.inodesFree','imagefs.available','imagefs.inodesFree','pid.available'";

/// A percentage or a quantity. The doubled bar also admits the empty string, as upstream's does.
const THRESHOLD: &str = r"^((\d{1,2}(\.\d{1,2})?|100(\.0{1,2})?)%||(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?)$";

pub fn kubelet(schema: Schema) -> Schema {
    let mut schema = schema
        .at("spec.kubelet", [
            open(),
            cel(
                "has(self.imageGCHighThresholdPercent) && has(self.imageGCLowThresholdPercent) ?  self.imageGCHighThresholdPercent > self.imageGCLowThresholdPercent  : true",
                "imageGCHighThresholdPercent must be greater than imageGCLowThresholdPercent",
            ),
            cel(
                "has(self.evictionSoft) ? self.evictionSoft.all(e, (e in self.evictionSoftGracePeriod)):true",
                "evictionSoft OwnerKey does not have a matching evictionSoftGracePeriod",
            ),
            cel(
                "has(self.evictionSoftGracePeriod) ? self.evictionSoftGracePeriod.all(e, (e in self.evictionSoft)):true",
                "evictionSoftGracePeriod OwnerKey does not have a matching evictionSoft",
            ),
        ])
        .at("spec.kubelet.maxPods", [
            description("The largest number of pods on a node: a number, or an expression over the instance type."),
            without("pattern"),
            minimum(0),
        ])
        .at("spec.kubelet.podsPerCore", [minimum(0)])
        .at("spec.kubelet.imageGCHighThresholdPercent", [minimum(0), maximum(100)])
        .at("spec.kubelet.imageGCLowThresholdPercent", [minimum(0), maximum(100)]);
    for field in ["systemReserved", "kubeReserved"] {
        schema = schema.at(&format!("spec.kubelet.{field}"), reserved_rules(field));
    }
    for field in ["evictionHard", "evictionSoft"] {
        schema = schema
            .at(&format!("spec.kubelet.{field}"), [signal_rule(field)])
            .at(&format!("spec.kubelet.{field}{{}}"), [pattern(THRESHOLD)]);
    }
    schema.at(
        "spec.kubelet.evictionSoftGracePeriod",
        [signal_rule("evictionSoftGracePeriod")],
    )
}

fn reserved_rules(field: &str) -> [Fact; 2] {
    [
        cel(
            "self.all(x, x=='cpu' || x=='memory' || x=='ephemeral-storage' || x=='pid')",
            format!("valid keys for {field} are ['cpu','memory','ephemeral-storage','pid']"),
        ),
        cel(
            "self.all(x, !self[x].startsWith('-'))",
            format!("{field} value cannot be a negative resource quantity"),
        ),
    ]
}

fn signal_rule(field: &str) -> Fact {
    cel(
        format!("self.all(x, x in [{SIGNALS}])"),
        format!("valid keys for {field} are [{SIGNALS}]"),
    )
}
