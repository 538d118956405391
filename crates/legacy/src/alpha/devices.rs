//! Instance metadata and volumes: what was implied is written down, and sizes fit the pattern of v1.

use api::aws::{BlockDevice, BlockDeviceMapping, MetadataOptions, Switch, TokenPolicy, VolumeType};
use model::Quantity;

use crate::notes::{Change, Notes};

const GIB: i64 = 1 << 30;
const LARGEST_GIB: i64 = 59_000;

/// The options of a class that had none.
pub fn absent_metadata_options() -> MetadataOptions {
    MetadataOptions {
        http_endpoint: Some(Switch::Enabled),
        http_protocol_ipv6: Some(Switch::Disabled),
        http_put_response_hop_limit: Some(2),
        http_tokens: Some(TokenPolicy::Required),
    }
}

/// The options of an alpha object that had some: EC2's defaults for the rest, which are not v1's.
pub fn metadata_options(written: &MetadataOptions) -> MetadataOptions {
    MetadataOptions {
        http_endpoint: Some(written.http_endpoint.clone().unwrap_or(Switch::Enabled)),
        http_protocol_ipv6: Some(written.http_protocol_ipv6.clone().unwrap_or(Switch::Disabled)),
        http_put_response_hop_limit: Some(written.http_put_response_hop_limit.unwrap_or(1)),
        http_tokens: Some(written.http_tokens.clone().unwrap_or(TokenPolicy::Optional)),
    }
}

/// The words and bounds that admission held the options to.
pub fn check_metadata_options(written: &MetadataOptions, notes: &mut Notes) {
    let field = |name: &str| format!("spec.metadataOptions.{name}");
    let switches = [
        ("httpEndpoint", &written.http_endpoint),
        ("httpProtocolIPv6", &written.http_protocol_ipv6),
    ];
    for (name, switch) in switches {
        if let Some(Switch::Other(word)) = switch {
            notes.invalid(field(name), format!("{word:?} is neither enabled nor disabled"));
        }
    }
    if let Some(TokenPolicy::Other(word)) = &written.http_tokens {
        notes.invalid(
            field("httpTokens"),
            format!("{word:?} is neither required nor optional"),
        );
    }
    if written
        .http_put_response_hop_limit
        .is_some_and(|hops| !(1..=64).contains(&hops))
    {
        notes.invalid(field("httpPutResponseHopLimit"), "is not between 1 and 64");
    }
}

/// The root volume that Ubuntu nodes had without saying so.
pub fn ubuntu_root() -> BlockDeviceMapping {
    BlockDeviceMapping {
        device_name: Some("/dev/sda1".to_owned()),
        root_volume: Some(true),
        ebs: Some(BlockDevice {
            encrypted: Some(true),
            volume_type: Some(VolumeType::Gp3),
            volume_size: Some("20Gi".to_owned()),
            ..BlockDevice::default()
        }),
    }
}

pub fn volumes(written: &[BlockDeviceMapping], notes: &mut Notes) -> Vec<BlockDeviceMapping> {
    let mut volumes = written.to_vec();
    for (index, volume) in volumes.iter_mut().enumerate() {
        let field = format!("spec.blockDeviceMappings[{index}]");
        if volume.device_name.as_deref().unwrap_or_default().is_empty() {
            notes.invalid(format!("{field}.deviceName"), "is missing");
        }
        let Some(ebs) = &mut volume.ebs else {
            notes.invalid(format!("{field}.ebs"), "is missing");
            continue;
        };
        if let Some(VolumeType::Other(word)) = &ebs.volume_type {
            let known = VolumeType::WORDS.join(", ");
            notes.invalid(
                format!("{field}.ebs.volumeType"),
                format!("{word:?} is none of {known}"),
            );
        }
        match &mut ebs.volume_size {
            Some(size) => *size = whole_gib(size, &format!("{field}.ebs.volumeSize"), notes),
            None if ebs.snapshot_id.is_none() => {
                notes.invalid(format!("{field}.ebs"), "neither volumeSize nor snapshotID is set");
            }
            None => {}
        }
    }
    volumes
}

/// The size in a form that v1 takes: itself if it is one already, else whole Gi, rounded up.
fn whole_gib(size: &str, field: &str, notes: &mut Notes) -> String {
    let fits = |suffix: &str, largest: i64| {
        let number = size.strip_suffix(suffix).and_then(|number| number.parse::<i64>().ok());
        number.is_some_and(|number| (1..=largest).contains(&number) && !size.starts_with(['0', '+']))
    };
    if fits("Gi", LARGEST_GIB) || fits("G", 64_000) || fits("T", 64) {
        return size.to_owned();
    }
    let bytes = match Quantity::parse(size) {
        Ok(quantity) if !quantity.is_negative() && !quantity.is_zero() => quantity.value_ceil(),
        _ => {
            notes.invalid(field, format!("{size:?} is not the size of a volume"));
            return size.to_owned();
        }
    };
    let gib = bytes / GIB + i64::from(bytes % GIB != 0);
    if gib > LARGEST_GIB {
        notes.invalid(field, format!("{size:?} is more than {LARGEST_GIB}Gi"));
    }
    let to = format!("{gib}Gi");
    if bytes % GIB != 0 {
        let from = size.to_owned();
        notes.warn(field, Change::SizeRounded { from, to: to.clone() });
    }
    to
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notes::Subject;

    #[test]
    fn sizes_become_whole_gi_only_where_v1_would_refuse_them() {
        for (from, to, told) in [
            ("20Gi", "20Gi", false),
            ("100G", "100G", false),
            ("64T", "64T", false),
            ("1Ti", "1024Gi", false),
            ("18Ti", "18432Gi", false),
            ("20480Mi", "20Gi", false),
            ("21474836480", "20Gi", false),
            ("500M", "1Gi", true),
            ("1.5Gi", "2Gi", true),
        ] {
            let mut notes = Notes::on(Subject {
                place: String::new(),
                object: String::new(),
            });
            assert_eq!(whole_gib(from, "", &mut notes), to, "{from}");
            assert_eq!(!notes.warnings.is_empty(), told, "{from}");
            assert!(notes.refusals.is_empty(), "{from}");
        }
        for wrong in ["", "Gi", "-1Gi", "0", "99999Gi", "large"] {
            let mut notes = Notes::on(Subject {
                place: String::new(),
                object: String::new(),
            });
            whole_gib(wrong, "", &mut notes);
            assert_eq!(notes.refusals.len(), 1, "{wrong}");
        }
    }
}
