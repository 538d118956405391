//! Aliases: an image family and a release of it, as SSM parameters that name the images.

use api::labels::aws;
use model::{Requirement, Requirements};

use super::Version;
use crate::family;

/// `al2023@latest`, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alias {
    family: Family,
    pub version: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Al2,
    Al2023,
    Bottlerocket,
    Windows(&'static str),
}

/// An alias that can never be resolved on this cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnsupportedAlias {
    #[error("alias {0:?} is not of the form family@version with a known family")]
    Malformed(String),
    #[error("there are no AL2 images for Kubernetes 1.33 and later; use al2023 or bottlerocket")]
    Al2TooNew,
    #[error("there are no Windows Server 2025 images before Kubernetes 1.35; use windows2022")]
    Windows2025TooOld,
}

/// What an image of an alias is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variant {
    Standard,
    Nvidia,
    Neuron,
}

impl Variant {
    fn requirements(self) -> Vec<Requirement> {
        match self {
            Variant::Standard => vec![
                Requirement::absent(aws::INSTANCE_ACCELERATOR_COUNT),
                Requirement::absent(aws::INSTANCE_GPU_COUNT),
            ],
            Variant::Nvidia => vec![Requirement::exists(aws::INSTANCE_GPU_COUNT)],
            Variant::Neuron => vec![Requirement::exists(aws::INSTANCE_ACCELERATOR_COUNT)],
        }
    }
}

/// A parameter that names an image, and the sets of instance types that the image is for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ImageParameter {
    pub name: String,
    /// The image behind the name may change.
    pub mutable: bool,
    pub uses: Vec<Requirements>,
}

impl Alias {
    pub fn parse(text: &str) -> Result<Self, UnsupportedAlias> {
        let malformed = || UnsupportedAlias::Malformed(text.to_owned());
        let (family, version) = text.split_once('@').ok_or_else(malformed)?;
        if version.is_empty() || version.contains('@') {
            return Err(malformed());
        }
        let family = match family {
            "al2" => Family::Al2,
            "al2023" => Family::Al2023,
            "bottlerocket" => Family::Bottlerocket,
            "windows2019" => Family::Windows("2019"),
            "windows2022" => Family::Windows("2022"),
            "windows2025" => Family::Windows("2025"),
            _ => return Err(malformed()),
        };
        Ok(Self {
            family,
            version: version.to_owned(),
        })
    }

    fn is_latest(&self) -> bool {
        self.version == "latest"
    }

    /// The parameters to ask for on a cluster of this version.
    pub(super) fn parameters(&self, cluster: Version) -> Result<Vec<ImageParameter>, UnsupportedAlias> {
        use Variant::{Neuron, Nvidia, Standard};
        let parameter = |name: String, variants: &[Variant]| ImageParameter {
            name,
            mutable: self.is_latest(),
            uses: variants
                .iter()
                .map(|variant| variant.requirements().into_iter().collect())
                .collect(),
        };
        // EKS names its releases after the image, AL2 and AL2023 each in their own way.
        let release = |image: &str| match self.is_latest() {
            true => "recommended".to_owned(),
            false => format!("{image}-{cluster}-{}", self.version),
        };
        let eks = |path: &str, image: &str| {
            format!(
                "/aws/service/eks/optimized-ami/{cluster}/{path}/{}/image_id",
                release(image)
            )
        };
        match self.family {
            Family::Al2 if cluster.minor >= 33 => Err(UnsupportedAlias::Al2TooNew),
            Family::Windows("2025") if cluster.minor < 35 => Err(UnsupportedAlias::Windows2025TooOld),
            Family::Al2 => Ok(vec![
                parameter(eks("amazon-linux-2", "amazon-eks-node"), &[Standard]),
                parameter(eks("amazon-linux-2-arm64", "amazon-eks-arm64-node"), &[Standard]),
                parameter(eks("amazon-linux-2-gpu", "amazon-eks-gpu-node"), &[Neuron, Nvidia]),
            ]),
            Family::Al2023 => {
                let images = [
                    ("x86_64", "standard", Standard),
                    ("x86_64", "nvidia", Nvidia),
                    ("x86_64", "neuron", Neuron),
                    ("arm64", "standard", Standard),
                    ("arm64", "nvidia", Nvidia),
                ];
                let one = |(arch, name, variant): (&str, &str, Variant)| {
                    let image = format!("amazon-eks-node-al2023-{arch}-{name}");
                    parameter(eks(&format!("amazon-linux-2023/{arch}/{name}"), &image), &[variant])
                };
                Ok(images.map(one).to_vec())
            }
            Family::Bottlerocket => {
                let version = self.version.trim_start_matches('v');
                let path = |flavour: &str, arch: &str| {
                    format!("/aws/service/bottlerocket/aws-k8s-{cluster}{flavour}/{arch}/{version}/image_id")
                };
                Ok(vec![
                    parameter(path("", "x86_64"), &[Standard, Neuron]),
                    parameter(path("", "arm64"), &[Standard]),
                    parameter(path("-nvidia", "x86_64"), &[Nvidia]),
                    parameter(path("-nvidia", "arm64"), &[Nvidia]),
                ])
            }
            Family::Windows(year) => Ok(vec![self.windows(year, cluster)]),
        }
    }

    fn windows(&self, year: &str, cluster: Version) -> ImageParameter {
        let ami_family = api::aws::AmiFamily::from(format!("Windows{year}").as_str());
        let build = family::windows_build(&ami_family).expect("every Windows family has a build");
        let requirements = [
            Requirement::one_of(api::labels::OS, ["windows"]),
            Requirement::one_of(api::labels::WINDOWS_BUILD, [build]),
        ];
        ImageParameter {
            name: format!(
                "/aws/service/ami-windows-latest/Windows_Server-{year}-English-Core-EKS_Optimized-{cluster}/image_id"
            ),
            mutable: true,
            uses: vec![requirements.into_iter().collect()],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(alias: &str, minor: u32) -> Result<Vec<String>, UnsupportedAlias> {
        let parameters = Alias::parse(alias)?.parameters(Version { major: 1, minor })?;
        Ok(parameters.into_iter().map(|parameter| parameter.name).collect())
    }

    /// AW24.3.6
    #[test]
    fn some_aliases_have_no_images_on_some_versions() {
        assert_eq!(names("al2@latest", 33), Err(UnsupportedAlias::Al2TooNew));
        assert!(names("al2@latest", 32).is_ok() && names("al2023@latest", 33).is_ok());
        assert_eq!(
            names("windows2025@latest", 34),
            Err(UnsupportedAlias::Windows2025TooOld)
        );
        assert!(names("windows2025@latest", 35).is_ok());
        for malformed in ["al2023@a@b", "al2023", "al2023@", "ubuntu@latest"] {
            assert_eq!(
                names(malformed, 32),
                Err(UnsupportedAlias::Malformed(malformed.to_owned()))
            );
        }
    }

    /// AW24.3.7
    #[test]
    fn releases_have_their_parameters() {
        let pinned = names("al2023@v20240625", 30).unwrap();
        assert_eq!(
            pinned[0],
            "/aws/service/eks/optimized-ami/1.30/amazon-linux-2023/x86_64/standard/\
             amazon-eks-node-al2023-x86_64-standard-1.30-v20240625/image_id"
        );
        let al2 = names("al2@v20240625", 30).unwrap();
        assert_eq!(
            al2[1],
            "/aws/service/eks/optimized-ami/1.30/amazon-linux-2-arm64/amazon-eks-arm64-node-1.30-v20240625/image_id"
        );
        assert_eq!(
            names("al2@latest", 30).unwrap()[2],
            "/aws/service/eks/optimized-ami/1.30/amazon-linux-2-gpu/recommended/image_id"
        );
        assert_eq!(names("bottlerocket@v1.20.1", 30), names("bottlerocket@1.20.1", 30));
        assert_eq!(
            names("bottlerocket@1.20.1", 30).unwrap()[3],
            "/aws/service/bottlerocket/aws-k8s-1.30-nvidia/arm64/1.20.1/image_id"
        );
        assert_eq!(
            names("windows2022@latest", 30).unwrap(),
            ["/aws/service/ami-windows-latest/Windows_Server-2022-English-Core-EKS_Optimized-1.30/image_id"]
        );
    }
}
