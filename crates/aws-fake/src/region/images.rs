//! The images that clusters boot from, and the parameters that lead to them.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp, Zoned, tz::TimeZone};

use super::{Tags, filter::Filtered, ids};

const AMAZON: &str = "602401143452";
/// Kubernetes versions 1.26 to 1.36, by their second number.
const MINORS: std::ops::RangeInclusive<u32> = 26..=36;

#[derive(Clone, Debug)]
pub struct Image {
    pub id: String,
    pub name: String,
    pub owner: String,
    pub owner_alias: Option<String>,
    pub architecture: String,
    pub windows: bool,
    pub created: Timestamp,
    pub deprecated: Option<Timestamp>,
    pub tags: Tags,
}

/// One date on which all families were published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// `20251101`, as the names of Amazon Linux images end.
    pub date: String,
    /// `1.50.0`.
    pub bottlerocket: String,
}

#[derive(Clone, Debug, Default)]
pub struct Images {
    pub by_id: BTreeMap<String, Image>,
    /// Systems Manager's public parameters and those of scripts.
    pub parameters: BTreeMap<String, String>,
}

/// One image of a release and the parameters that name it: of this release, and of the newest.
struct Published {
    name: String,
    architecture: &'static str,
    windows: bool,
    parameters: Vec<String>,
}

impl Images {
    /// Two releases of every family, so that an older one can be asked for.
    pub fn of_all_families() -> Self {
        let mut images = Self::default();
        for (date, bottlerocket) in [("20250704", "1.42.0"), ("20251101", "1.50.0")] {
            images.publish(&Release {
                date: date.to_owned(),
                bottlerocket: bottlerocket.to_owned(),
            });
        }
        images
    }

    /// Adds the images of a release and lets the parameters for the newest image lead to them.
    pub fn publish(&mut self, release: &Release) {
        let created = moment(&release.date);
        for minor in MINORS {
            for published in families(minor, release) {
                let image = Image {
                    id: ids::named("ami", &published.name),
                    owner: AMAZON.to_owned(),
                    owner_alias: Some("amazon".to_owned()),
                    architecture: published.architecture.to_owned(),
                    windows: published.windows,
                    created,
                    // AWS deprecates public images after two years.
                    deprecated: created.checked_add(SignedDuration::from_hours(2 * 365 * 24)).ok(),
                    tags: Tags::new(),
                    name: published.name,
                };
                for parameter in published.parameters {
                    self.parameters.insert(parameter, image.id.clone());
                }
                self.by_id.insert(image.id.clone(), image);
            }
        }
    }
}

/// Midnight of a day written as `20251101`; the beginning of 2025 for anything else.
fn moment(date: &str) -> Timestamp {
    let parsed = jiff::civil::Date::strptime("%Y%m%d", date).ok();
    let parsed = parsed.and_then(|date| date.to_zoned(TimeZone::UTC).ok());
    let fallback = || jiff::civil::date(2025, 1, 1).to_zoned(TimeZone::UTC).ok();
    parsed
        .or_else(fallback)
        .map_or(Timestamp::UNIX_EPOCH, |zoned: Zoned| zoned.timestamp())
}

fn families(minor: u32, release: &Release) -> Vec<Published> {
    let date = &release.date;
    let linux = |name: String, architecture, parameters: [String; 2]| Published {
        name,
        architecture,
        windows: false,
        parameters: parameters.into(),
    };
    let mut all = Vec::new();
    let al2023 = format!("/aws/service/eks/optimized-ami/1.{minor}/amazon-linux-2023");
    for (architecture, variant) in [
        ("x86_64", "standard"),
        ("x86_64", "nvidia"),
        ("x86_64", "neuron"),
        ("arm64", "standard"),
        ("arm64", "nvidia"),
    ] {
        let name = format!("amazon-eks-node-al2023-{architecture}-{variant}-1.{minor}-v{date}");
        let path = |release: &str| format!("{al2023}/{architecture}/{variant}/{release}/image_id");
        let paths = [path(&name), path("recommended")];
        all.push(linux(name, architecture, paths));
    }
    // Amazon Linux 2 ended with Kubernetes 1.32.
    if minor <= 32 {
        for (folder, kind, architecture) in [
            ("amazon-linux-2", "amazon-eks-node", "x86_64"),
            ("amazon-linux-2-arm64", "amazon-eks-arm64-node", "arm64"),
            ("amazon-linux-2-gpu", "amazon-eks-gpu-node", "x86_64"),
        ] {
            let name = format!("{kind}-1.{minor}-v{date}");
            let path = |release: &str| format!("/aws/service/eks/optimized-ami/1.{minor}/{folder}/{release}/image_id");
            let paths = [path(&name), path("recommended")];
            all.push(linux(name, architecture, paths));
        }
    }
    for (architecture, variant) in [
        ("x86_64", ""),
        ("arm64", ""),
        ("x86_64", "-nvidia"),
        ("arm64", "-nvidia"),
    ] {
        let version = &release.bottlerocket;
        let folder = format!("/aws/service/bottlerocket/aws-k8s-1.{minor}{variant}/{architecture}");
        let name = format!("bottlerocket-aws-k8s-1.{minor}{variant}-{architecture}-v{version}-0f1e2d3c");
        let paths = [
            format!("{folder}/{version}/image_id"),
            format!("{folder}/latest/image_id"),
        ];
        all.push(linux(name, architecture, paths));
    }
    for year in ["2019", "2022", "2025"] {
        let name = format!("Windows_Server-{year}-English-Core-EKS_Optimized-1.{minor}");
        let parameter = format!("/aws/service/ami-windows-latest/{name}/image_id");
        all.push(Published {
            name: format!("{name}-{date}"),
            architecture: "x86_64",
            windows: true,
            parameters: vec![parameter],
        });
    }
    all
}

impl Filtered for Image {
    fn tags(&self) -> &Tags {
        &self.tags
    }

    fn field(&self, name: &str) -> Option<Vec<String>> {
        let value = match name {
            "image-id" => self.id.clone(),
            "name" => self.name.clone(),
            "state" => "available".to_owned(),
            "architecture" => self.architecture.clone(),
            "owner-id" => self.owner.clone(),
            "owner-alias" => return Some(self.owner_alias.iter().cloned().collect()),
            "is-public" => self.owner_alias.is_some().to_string(),
            "virtualization-type" => "hvm".to_owned(),
            "root-device-type" => "ebs".to_owned(),
            "image-type" => "machine".to_owned(),
            "platform" => return Some(self.windows.then(|| "windows".to_owned()).into_iter().collect()),
            _ => return None,
        };
        Some(vec![value])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image<'a>(images: &'a Images, parameter: &str) -> &'a Image {
        &images.by_id[&images.parameters[parameter]]
    }

    #[test]
    fn parameters_lead_to_images_of_their_architecture() {
        let images = Images::of_all_families();
        let table = [
            (
                "/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/arm64/standard/recommended/image_id",
                "arm64",
            ),
            (
                "/aws/service/eks/optimized-ami/1.32/amazon-linux-2-gpu/recommended/image_id",
                "x86_64",
            ),
            (
                "/aws/service/bottlerocket/aws-k8s-1.35-nvidia/arm64/latest/image_id",
                "arm64",
            ),
            (
                "/aws/service/bottlerocket/aws-k8s-1.35/x86_64/1.42.0/image_id",
                "x86_64",
            ),
            (
                "/aws/service/ami-windows-latest/Windows_Server-2022-English-Core-EKS_Optimized-1.35/image_id",
                "x86_64",
            ),
        ];
        for (parameter, architecture) in table {
            assert_eq!(image(&images, parameter).architecture, architecture, "{parameter}");
        }
        assert!(
            !images
                .parameters
                .keys()
                .any(|path| path.contains("/1.33/amazon-linux-2/"))
        );
    }

    #[test]
    fn a_new_release_moves_the_newest_and_leaves_the_others() {
        let mut images = Images::of_all_families();
        let folder = "/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/x86_64/standard";
        let newest = format!("{folder}/recommended/image_id");
        let fixed = format!("{folder}/amazon-eks-node-al2023-x86_64-standard-1.35-v20251101/image_id");
        assert_eq!(images.parameters[&newest], images.parameters[&fixed]);
        images.publish(&Release {
            date: "20260401".to_owned(),
            bottlerocket: "1.60.0".to_owned(),
        });
        assert_ne!(images.parameters[&newest], images.parameters[&fixed]);
        assert_eq!(image(&images, &newest).created.to_string(), "2026-04-01T00:00:00Z");
    }
}
