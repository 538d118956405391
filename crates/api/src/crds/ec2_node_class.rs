//! EC2NodeClass, `karpenter.k8s.aws/v1`. Selector terms and kubelet settings have their own files.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::json;

use super::columns::{age, condition, text, wide};
use super::schema::{Fact, Schema, cel, default, list_type, max_items, maximum, minimum, pattern, required, without};
use super::{blocks, ec2_kubelet, ec2_selectors};
use crate::aws::EC2NodeClass;

/// Whole Gi and G up to EBS's largest volume. The Ti and T branches have gaps, and accept the bare
/// suffix; both are upstream's.
const VOLUME_SIZE: &str = r"^((?:[1-9][0-9]{0,3}|[1-4][0-9]{4}|[5][0-8][0-9]{3}|59000)Gi|(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|[6][0-3][0-9]{3}|64000)G|([1-9]||[1-5][0-7]|58)Ti|([1-9]||[1-5][0-9]|6[0-3]|64)T)$";

/// The families an alias may name: in the alias, as `amiFamily`, and the article of the latter.
const ALIAS_FAMILIES: &[(&str, &str, &str)] = &[
    ("al2", "AL2", "an"),
    ("al2023", "AL2023", "an"),
    ("bottlerocket", "Bottlerocket", "a"),
    ("windows2019", "Windows2019", "a"),
    ("windows2022", "Windows2022", "a"),
    ("windows2025", "Windows2025", "a"),
];

pub fn crd() -> CustomResourceDefinition {
    let schema = Schema::of::<EC2NodeClass>()
        .columns([condition("Ready"), age(), wide(text("Role", ".spec.role"))])
        .at("", [without("required")])
        .at(
            "spec",
            [required(&[
                "amiSelectorTerms",
                "securityGroupSelectorTerms",
                "subnetSelectorTerms",
            ])],
        )
        .at("spec", spec_rules())
        .at("spec.role", [cel("self != ''", "role cannot be empty")])
        .at(
            "spec.instanceProfile",
            [cel("self != ''", "instanceProfile cannot be empty")],
        )
        .at("spec.tags", tag_rules())
        .at("spec.ipPrefixCount", [minimum(0)]);
    let schema = network(storage(schema));
    let schema = ec2_selectors::selectors(schema);
    let schema = ec2_kubelet::kubelet(schema);
    status(schema).into_crd()
}

fn spec_rules() -> Vec<Fact> {
    let mut rules = vec![cel(
        "(has(self.role) && !has(self.instanceProfile)) || (!has(self.role) && has(self.instanceProfile))",
        "must specify exactly one of ['role', 'instanceProfile']",
    )];
    for (alias, family, article) in ALIAS_FAMILIES {
        rules.push(cel(
            format!(
                "!has(self.amiFamily) || (self.amiSelectorTerms.exists(x, has(x.alias) && x.alias.find('^[^@]+') == '{alias}') ? (self.amiFamily == 'Custom' || self.amiFamily == '{family}') : true)"
            ),
            format!(
                "if set, amiFamily must be '{family}' or 'Custom' when using {article} {family} alias"
            ),
        ));
    }
    rules.push(cel(
        "self.amiSelectorTerms.exists(x, has(x.alias)) ? true : has(self.amiFamily)",
        "must specify amiFamily if amiSelectorTerms does not contain an alias",
    ));
    rules
}

fn tag_rules() -> Vec<Fact> {
    vec![
        cel("self.all(k, k != '')", "empty tag keys aren't supported"),
        cel(
            "self.all(k, k !='eks:eks-cluster-name')",
            "tag contains a restricted tag matching eks:eks-cluster-name",
        ),
        cel(
            "self.all(k, !k.startsWith('kubernetes.io/cluster') )",
            "tag contains a restricted tag matching kubernetes.io/cluster/",
        ),
        cel(
            "self.all(k, k != 'karpenter.sh/nodepool')",
            "tag contains a restricted tag matching karpenter.sh/nodepool",
        ),
        cel(
            "self.all(k, k !='karpenter.sh/nodeclaim')",
            "tag contains a restricted tag matching karpenter.sh/nodeclaim",
        ),
        cel(
            "self.all(k, k !='karpenter.k8s.aws/ec2nodeclass')",
            "tag contains a restricted tag matching karpenter.k8s.aws/ec2nodeclass",
        ),
    ]
}

fn storage(schema: Schema) -> Schema {
    schema
        .at(
            "spec.blockDeviceMappings",
            [
                max_items(50),
                cel(
                    "self.filter(x, has(x.rootVolume)?x.rootVolume==true:false).size() <= 1",
                    "must have only one blockDeviceMappings with rootVolume",
                ),
            ],
        )
        .at(
            "spec.blockDeviceMappings[].ebs",
            [
                cel(
                    "has(self.snapshotID) || has(self.volumeSize)",
                    "snapshotID or volumeSize must be defined",
                ),
                cel(
                    "!has(self.volumeInitializationRate) || (has(self.snapshotID) && self.snapshotID != '')",
                    "snapshotID must be set when volumeInitializationRate is set",
                ),
            ],
        )
        .at(
            "spec.blockDeviceMappings[].ebs.volumeInitializationRate",
            [minimum(100), maximum(300)],
        )
        .at("spec.blockDeviceMappings[].ebs.volumeSize", [pattern(VOLUME_SIZE)])
}

fn network(schema: Schema) -> Schema {
    schema
        .at("spec.networkInterfaces", [
            max_items(150),
            cel(
                "self.size() == 0 || self.exists(x, x.deviceIndex == 0 && x.networkCardIndex == 0 && x.interfaceType == 'interface')",
                "networkInterfaces must include a primary interface with interfaceType='interface'",
            ),
            cel(
                "self.all(x, self.filter(y, x.networkCardIndex == y.networkCardIndex && x.deviceIndex == y.deviceIndex).size() == 1 && (x.interfaceType != 'efa-only' || self.filter(y, x.networkCardIndex == y.networkCardIndex && y.interfaceType == 'efa-only').size() == 1))",
                "networkInterfaces must not have duplicate networkCardIndex and deviceIndex pairs, and can have at most one efa device per network card",
            ),
        ])
        .at("spec.networkInterfaces[].networkCardIndex", [minimum(0)])
        .at("spec.networkInterfaces[].deviceIndex", [minimum(0)])
        .at("spec.metadataOptions", [default(json!({
            "httpEndpoint": "enabled",
            "httpProtocolIPv6": "disabled",
            "httpPutResponseHopLimit": 1,
            "httpTokens": "required",
        }))])
        .at("spec.metadataOptions.httpEndpoint", [default(json!("enabled"))])
        .at("spec.metadataOptions.httpProtocolIPv6", [default(json!("disabled"))])
        .at("spec.metadataOptions.httpPutResponseHopLimit", [
            default(json!(1)),
            minimum(1),
            maximum(64),
        ])
        .at("spec.metadataOptions.httpTokens", [default(json!("required"))])
        .at("spec.connectionTracking", [cel(
            "has(self.tcpEstablishedTimeout) || has(self.udpStreamTimeout) || has(self.udpTimeout)",
            "at least one of tcpEstablishedTimeout, udpStreamTimeout, or udpTimeout must be set",
        )])
        .at("spec.connectionTracking.tcpEstablishedTimeout", [minimum(60), maximum(432_000)])
        .at("spec.connectionTracking.udpStreamTimeout", [minimum(60), maximum(180)])
        .at("spec.connectionTracking.udpTimeout", [minimum(30), maximum(60)])
}

fn status(schema: Schema) -> Schema {
    let schema = schema
        .at("status.amis[].requirements[].values", [list_type("atomic")])
        .at(
            "status.capacityReservations[].id",
            [pattern(ec2_selectors::RESERVATION_ID)],
        )
        .at(
            "status.capacityReservations[].ownerID",
            [pattern(ec2_selectors::ACCOUNT_ID)],
        )
        .at(
            "status.capacityReservations[].reservationType",
            [default(json!("default"))],
        )
        .at("status.capacityReservations[].state", [default(json!("active"))]);
    blocks::unkeyed_conditions(schema, "status.conditions")
}
