//! The volumes of a template.

use api::aws::{BlockDevice, BlockDeviceMapping, EC2NodeClass};
use model::Quantity;

use crate::{
    class_view, family,
    ports::{Ebs, Volume},
};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("spec.blockDeviceMappings: volumeSize {0:?} is not a size")]
pub struct UnreadableSize(pub String);

/// The class's own, or its family's.
pub(super) fn volumes(class: &EC2NodeClass) -> Result<Vec<Volume>, UnreadableSize> {
    let own = class.spec.block_device_mappings.as_ref().filter(|own| !own.is_empty());
    let default = || family::default_volumes(&class_view::family(class));
    let mappings = own.cloned().unwrap_or_else(default);
    mappings.iter().map(volume).collect()
}

fn volume(mapping: &BlockDeviceMapping) -> Result<Volume, UnreadableSize> {
    Ok(Volume {
        device_name: mapping.device_name.clone(),
        ebs: mapping.ebs.as_ref().map(ebs).transpose()?,
    })
}

fn ebs(device: &BlockDevice) -> Result<Ebs, UnreadableSize> {
    let size_gib = |text: &String| {
        let size = Quantity::parse(text).map_err(|_| UnreadableSize(text.clone()))?;
        let gib = 1 << 30;
        Ok::<_, UnreadableSize>((size.value_ceil() + gib - 1) / gib)
    };
    Ok(Ebs {
        delete_on_termination: device.delete_on_termination,
        encrypted: device.encrypted,
        // EC2 refuses a zero for volume types without the setting.
        iops: device.iops.filter(|iops| *iops != 0),
        throughput: device.throughput.filter(|throughput| *throughput != 0),
        kms_key_id: device.kms_key_id.clone(),
        snapshot_id: device.snapshot_id.clone(),
        volume_initialization_rate: device.volume_initialization_rate,
        size_gib: device.volume_size.as_ref().map(size_gib).transpose()?,
        volume_type: device.volume_type.as_ref().map(ToString::to_string),
    })
}
