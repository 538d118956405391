//! Launch templates that a user made. v1 has no place for them: their content moves into the class, or their name into an
//! annotation that our launcher honours.

use api::aws::{
    AmiFamily, AmiSelectorTerm, BlockDevice, BlockDeviceMapping, EC2NodeClassSpec, MetadataOptions,
    SecurityGroupSelectorTerm, Switch, TokenPolicy, VolumeType,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::notes::{Change, Notes, Reason};
use crate::options::LaunchTemplates;

pub use api::labels::compatibility::LAUNCH_TEMPLATE as ANNOTATION;

/// The field that tells an answer of `aws ec2 describe-launch-template-versions`.
pub const DESCRIPTION_FIELD: &str = "LaunchTemplateVersions";

/// How an object names its template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateRef {
    /// A name, or an id that begins with `lt-`.
    pub template: String,
    /// Absent means the default version.
    pub version: Option<String>,
}

/// One version of a template, as AWS describes it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Description {
    launch_template_id: String,
    launch_template_name: String,
    version_number: i64,
    default_version: bool,
    launch_template_data: Data,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Data {
    image_id: Option<String>,
    user_data: Option<String>,
    iam_instance_profile: Option<Profile>,
    security_group_ids: Vec<String>,
    network_interfaces: Vec<Interface>,
    block_device_mappings: Vec<Device>,
    metadata_options: Option<Metadata>,
    monitoring: Option<Monitoring>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Profile {
    arn: Option<String>,
    name: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Interface {
    groups: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Device {
    device_name: Option<String>,
    ebs: Option<Ebs>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Ebs {
    delete_on_termination: Option<bool>,
    encrypted: Option<bool>,
    iops: Option<i64>,
    kms_key_id: Option<String>,
    snapshot_id: Option<String>,
    throughput: Option<i64>,
    volume_size: Option<i64>,
    volume_type: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Metadata {
    http_endpoint: Option<String>,
    http_protocol_ipv6: Option<String>,
    http_put_response_hop_limit: Option<i64>,
    http_tokens: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Monitoring {
    enabled: bool,
}

/// The described version that a reference means.
fn find<'a>(reference: &TemplateRef, described: &'a [Description]) -> Option<&'a Description> {
    let is_meant = |description: &&Description| {
        reference.template == description.launch_template_name || reference.template == description.launch_template_id
    };
    let mut versions = described.iter().filter(is_meant);
    match reference.version.as_deref() {
        None | Some("$Default") => versions.find(|version| version.default_version),
        Some("$Latest") => versions.max_by_key(|version| version.version_number),
        Some(number) => versions.find(|version| version.version_number.to_string() == number),
    }
}

/// Fills a class from the template that its source names. The answer is the value of [`ANNOTATION`], if it gets one.
pub fn apply(
    reference: &TemplateRef,
    choice: LaunchTemplates,
    described: &[Description],
    class: &mut EC2NodeClassSpec,
    notes: &mut Notes,
) -> Option<String> {
    if choice == LaunchTemplates::Refuse {
        notes.refuse("", Reason::LaunchTemplate);
        return None;
    }
    let name = reference.template.clone();
    let Some(description) = find(reference, described) else {
        notes.refuse("spec.launchTemplate", Reason::LaunchTemplateUnknown { name });
        return None;
    };
    let data = &description.launch_template_data;
    let unfit = |notes: &mut Notes, problem: &str| {
        let (name, problem) = (reference.template.clone(), problem.to_owned());
        notes.refuse("spec.launchTemplate", Reason::LaunchTemplateUnfit { name, problem });
    };
    match image(data) {
        Some(term) => class.ami_selector_terms = vec![term],
        None => unfit(notes, "it names no image"),
    }
    class.ami_family = Some(AmiFamily::Custom);
    let groups = security_groups(data);
    if !groups.is_empty() {
        class.security_group_selector_terms = groups;
    } else if class.security_group_selector_terms.is_empty() {
        unfit(notes, "it names no security groups");
    }
    if class.role.is_none()
        && let Some(profile) = data.iam_instance_profile.as_ref().and_then(profile_name)
    {
        class.instance_profile = Some(profile);
    }
    if choice == LaunchTemplates::Keep {
        let name = description.launch_template_name.clone();
        notes.warn("spec.launchTemplate", Change::LaunchTemplateKept { name: name.clone() });
        return Some(match &reference.version {
            Some(version) => format!("{name}:{version}"),
            None => name,
        });
    }
    notes.warn("spec.launchTemplate", Change::LaunchTemplateResolved { name });
    notes.warn("spec.launchTemplate", Change::UserDataNeedsTaint);
    match data.user_data.as_deref().map(decode).transpose() {
        Ok(user_data) => class.user_data = user_data,
        Err(problem) => unfit(notes, problem),
    }
    let volumes: Vec<_> = data.block_device_mappings.iter().map(volume).collect();
    class.block_device_mappings = (!volumes.is_empty()).then_some(volumes);
    class.metadata_options = data.metadata_options.as_ref().map(metadata_options);
    class.detailed_monitoring = data.monitoring.as_ref().map(|monitoring| monitoring.enabled);
    None
}

fn image(data: &Data) -> Option<AmiSelectorTerm> {
    let image = data.image_id.clone()?;
    Some(match image.strip_prefix("resolve:ssm:") {
        Some(parameter) => AmiSelectorTerm {
            ssm_parameter: Some(parameter.to_owned()),
            ..AmiSelectorTerm::default()
        },
        None => AmiSelectorTerm {
            id: Some(image),
            ..AmiSelectorTerm::default()
        },
    })
}

fn security_groups(data: &Data) -> Vec<SecurityGroupSelectorTerm> {
    let of_interfaces = data.network_interfaces.iter().flat_map(|interface| &interface.groups);
    let mut terms = Vec::new();
    for id in data.security_group_ids.iter().chain(of_interfaces) {
        let term = SecurityGroupSelectorTerm {
            id: Some(id.clone()),
            ..SecurityGroupSelectorTerm::default()
        };
        if !terms.contains(&term) {
            terms.push(term);
        }
    }
    terms
}

fn profile_name(profile: &Profile) -> Option<String> {
    let of_arn = || profile.arn.as_deref()?.rsplit('/').next().map(str::to_owned);
    profile.name.clone().or_else(of_arn)
}

fn decode(user_data: &str) -> Result<String, &'static str> {
    let bytes = STANDARD.decode(user_data).map_err(|_| "its user data is not base64")?;
    String::from_utf8(bytes).map_err(|_| "its user data is not text")
}

fn volume(device: &Device) -> BlockDeviceMapping {
    BlockDeviceMapping {
        device_name: device.device_name.clone(),
        root_volume: None,
        ebs: device.ebs.as_ref().map(|ebs| BlockDevice {
            delete_on_termination: ebs.delete_on_termination,
            encrypted: ebs.encrypted,
            iops: ebs.iops,
            kms_key_id: ebs.kms_key_id.clone(),
            snapshot_id: ebs.snapshot_id.clone(),
            throughput: ebs.throughput,
            volume_initialization_rate: None,
            volume_size: ebs.volume_size.map(|size| format!("{size}Gi")),
            volume_type: ebs.volume_type.as_deref().map(VolumeType::from),
        }),
    }
}

/// As for metadata options in an object: what the template leaves open is EC2's default.
fn metadata_options(written: &Metadata) -> MetadataOptions {
    let written = MetadataOptions {
        http_endpoint: written.http_endpoint.as_deref().map(Switch::from),
        http_protocol_ipv6: written.http_protocol_ipv6.as_deref().map(Switch::from),
        http_put_response_hop_limit: written.http_put_response_hop_limit,
        http_tokens: written.http_tokens.as_deref().map(TokenPolicy::from),
    };
    super::devices::metadata_options(&written)
}
