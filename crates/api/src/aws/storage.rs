//! The volumes of an instance.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::text_enum::text_enum;

/// One device of an instance.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockDeviceMapping {
    /// The device name, as in /dev/xvda.
    pub device_name: Option<String>,
    /// The EBS volume behind the device.
    pub ebs: Option<BlockDevice>,
    /// Whether the kubelet keeps its data here; its size then counts as ephemeral storage.
    pub root_volume: Option<bool>,
}

text_enum! {
    /// The type of an EBS volume.
    pub enum VolumeType {
        Standard = "standard",
        Io1 = "io1",
        Io2 = "io2",
        Gp2 = "gp2",
        Sc1 = "sc1",
        St1 = "st1",
        Gp3 = "gp3",
    }
}

/// An EBS volume.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockDevice {
    /// Whether the volume goes with the instance.
    pub delete_on_termination: Option<bool>,
    /// Whether the volume is encrypted.
    pub encrypted: Option<bool>,
    /// Operations per second.
    pub iops: Option<i64>,
    /// The key the volume is encrypted with.
    #[serde(rename = "kmsKeyID")]
    pub kms_key_id: Option<String>,
    /// The snapshot the volume starts from.
    #[serde(rename = "snapshotID")]
    pub snapshot_id: Option<String>,
    /// Throughput in MiB per second.
    pub throughput: Option<i64>,
    /// How fast the snapshot is loaded, in MiB per second.
    pub volume_initialization_rate: Option<i32>,
    /// The size, as a quantity in whole Gi, G, Ti or T.
    pub volume_size: Option<String>,
    /// The type of the volume.
    pub volume_type: Option<VolumeType>,
}
