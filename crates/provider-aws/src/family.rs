//! What tells the image families apart, apart from their user data.

use api::aws::{AmiFamily, BlockDevice, BlockDeviceMapping, VolumeType};

/// Where the kubelet keeps its data unless the class says otherwise; `None` where only the image knows.
pub fn ephemeral_device(family: &AmiFamily) -> Option<&'static str> {
    match family {
        AmiFamily::Bottlerocket => Some("/dev/xvdb"),
        AmiFamily::Windows2019 | AmiFamily::Windows2022 | AmiFamily::Windows2025 => Some("/dev/sda1"),
        AmiFamily::Custom => None,
        AmiFamily::Al2 | AmiFamily::Al2023 | AmiFamily::Other(_) => Some("/dev/xvda"),
    }
}

/// The volumes of an instance whose class names none. Empty where the image's own are used.
pub fn default_volumes(family: &AmiFamily) -> Vec<BlockDeviceMapping> {
    let volumes: &[(&str, &str)] = match family {
        AmiFamily::Bottlerocket => &[("/dev/xvda", "4Gi"), ("/dev/xvdb", "20Gi")],
        AmiFamily::Windows2019 | AmiFamily::Windows2022 | AmiFamily::Windows2025 => &[("/dev/sda1", "50Gi")],
        AmiFamily::Custom => &[],
        AmiFamily::Al2 | AmiFamily::Al2023 | AmiFamily::Other(_) => &[("/dev/xvda", "20Gi")],
    };
    let mapping = |(device, size): &(&str, &str)| BlockDeviceMapping {
        device_name: Some((*device).to_owned()),
        ebs: Some(BlockDevice {
            encrypted: Some(true),
            volume_type: Some(VolumeType::Gp3),
            volume_size: Some((*size).to_owned()),
            ..BlockDevice::default()
        }),
        root_volume: None,
    };
    volumes.iter().map(mapping).collect()
}

/// The Windows build that nodes of the family report.
pub fn windows_build(family: &AmiFamily) -> Option<&'static str> {
    match family {
        AmiFamily::Windows2019 => Some("10.0.17763"),
        AmiFamily::Windows2022 => Some("10.0.20348"),
        AmiFamily::Windows2025 => Some("10.0.26100"),
        _ => None,
    }
}

pub fn is_windows(family: &AmiFamily) -> bool {
    windows_build(family).is_some()
}

/// Whether the kubelet's share of memory follows the pods that the interfaces could serve, and not those allowed.
pub fn reserves_by_interfaces(family: &AmiFamily) -> bool {
    !is_windows(family) && *family != AmiFamily::Bottlerocket
}

pub fn honours_pods_per_core(family: &AmiFamily) -> bool {
    *family != AmiFamily::Bottlerocket
}

/// Whether pods get addresses of the interfaces, so that these bound their number.
pub fn pods_bounded_by_interfaces(family: &AmiFamily) -> bool {
    !is_windows(family)
}
