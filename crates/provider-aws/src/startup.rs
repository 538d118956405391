//! Where the program is: cluster, version, certificate. Asked before anything else; without an answer nothing else begins.

use std::net::IpAddr;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use tracing::{debug, warn};

use crate::{
    discovery::{MalformedVersion, Version},
    error::AwsError,
    launch::template::ClusterFacts,
    options::Options,
    ports::Aws,
};

#[derive(Debug, thiserror::Error)]
pub enum StartupError {
    #[error("EC2 does not accept the credentials or the region; hint: check the role of the controller and AWS_REGION")]
    NoAccess(#[source] AwsError),
    #[error(
        "EC2 does not answer; hint: check AWS_REGION and the way to EC2's endpoint; where the cluster's own DNS is not up yet, \
         dnsPolicy: Default"
    )]
    NoAnswer(#[source] AwsError),
    #[error("EKS does not describe cluster {cluster}; hint: check --cluster-name, or set --cluster-endpoint")]
    NoCluster {
        cluster: String,
        #[source]
        cause: AwsError,
    },
    #[error("zonal shifts of cluster {cluster} cannot be read; hint: --enable-zonal-shift=false")]
    NoShifts {
        cluster: String,
        #[source]
        cause: AwsError,
    },
    #[error("EKS names no {what} of cluster {cluster}; hint: {hint}")]
    Unsaid {
        cluster: String,
        what: &'static str,
        hint: &'static str,
    },
    #[error("the version of the cluster cannot be read")]
    Version(#[source] MalformedVersion),
    #[error("the certificate of the API server is not known; hint: set --cluster-ca-bundle")]
    NoCertificate,
}

impl StartupError {
    /// Whether asking again is in vain: AWS may answer another time, and clusters and roles may be made. What this process
    /// was given stays as it is.
    pub fn is_final(&self) -> bool {
        matches!(self, StartupError::NoCertificate)
    }
}

/// What Kubernetes itself tells.
#[derive(Clone, Debug, Default)]
pub struct FromKubernetes {
    /// `major.minor` of the API server.
    pub version: String,
    /// The address of the cluster's DNS service, where there is one.
    pub dns: Option<IpAddr>,
    /// The certificate that the client trusts, as the client has it.
    pub ca_certificate: Option<Vec<u8>>,
}

/// What was found out.
#[derive(Clone, Debug, PartialEq)]
pub struct Discovered {
    pub cluster: ClusterFacts,
    pub version: Version,
    /// Set where zonal shifts count.
    pub shifted_cluster: Option<String>,
}

/// Asks in the order in which answers help: whether AWS listens at all, then where the cluster is, then what it is.
pub async fn discover(
    aws: &Aws,
    options: &Options,
    region: &str,
    kubernetes: &FromKubernetes,
) -> Result<Discovered, StartupError> {
    check_access(aws).await?;
    let endpoint = match &options.cluster_endpoint {
        Some(endpoint) => endpoint.clone(),
        None => endpoint(aws, options).await?,
    };
    let shifted_cluster = match options.zonal_shift {
        true => Some(shifted_cluster(aws, options).await?),
        false => None,
    };
    let version = version(aws, options, &kubernetes.version).await?;
    if !version.is_supported() {
        warn!(%version, "this version of Kubernetes has not been tried with this release");
    }
    let dns = kubernetes.dns;
    if dns.is_none() {
        debug!("the cluster's DNS service is not known; nodes use what their image says");
    }
    let discovered = kubernetes
        .ca_certificate
        .as_ref()
        .map(|certificate| STANDARD.encode(certificate));
    let ca_bundle = options.cluster_ca_bundle.clone().or(discovered);
    Ok(Discovered {
        cluster: ClusterFacts {
            name: options.cluster_name.clone(),
            region: region.to_owned(),
            endpoint,
            ca_bundle: Some(ca_bundle.ok_or(StartupError::NoCertificate)?),
            service_cidr: None,
            dns,
        },
        version,
        shifted_cluster,
    })
}

async fn check_access(aws: &Aws) -> Result<(), StartupError> {
    match aws.ec2.check_access().await {
        Err(error) if error.is_passed_dry_run() => Ok(()),
        Err(error) if error.is_server_fault() => Err(StartupError::NoAnswer(error)),
        answer => answer.map_err(StartupError::NoAccess),
    }
}

async fn endpoint(aws: &Aws, options: &Options) -> Result<String, StartupError> {
    let endpoint = described(aws, options).await?.endpoint;
    said(endpoint, "endpoint", "set --cluster-endpoint", options)
}

async fn shifted_cluster(aws: &Aws, options: &Options) -> Result<String, StartupError> {
    let arn = described(aws, options).await?.arn;
    let arn = said(arn, "ARN", "--enable-zonal-shift=false", options)?;
    let shifts = aws.zonal_shift.shifts(&arn).await;
    shifts.map_err(|cause| StartupError::NoShifts {
        cluster: options.cluster_name.clone(),
        cause,
    })?;
    Ok(arn)
}

/// The version of the cluster: EKS's word where the control plane is EKS's, otherwise the API server's.
pub async fn version(aws: &Aws, options: &Options, api_server: &str) -> Result<Version, StartupError> {
    let text = match options.eks_control_plane {
        true => described(aws, options).await?.version,
        false => api_server.to_owned(),
    };
    text.parse().map_err(StartupError::Version)
}

async fn described(aws: &Aws, options: &Options) -> Result<crate::ports::ClusterInfo, StartupError> {
    let found = aws.eks.cluster(&options.cluster_name).await;
    found.map_err(|cause| StartupError::NoCluster {
        cluster: options.cluster_name.clone(),
        cause,
    })
}

fn said(text: String, what: &'static str, hint: &'static str, options: &Options) -> Result<String, StartupError> {
    if text.is_empty() {
        let cluster = options.cluster_name.clone();
        return Err(StartupError::Unsaid { cluster, what, hint });
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ports::ClusterInfo,
        testing::{fake::FakeAws, samples::REGION},
    };

    fn kubernetes() -> FromKubernetes {
        FromKubernetes {
            version: "1.32+".to_owned(),
            dns: Some("10.100.0.10".parse().unwrap()),
            ca_certificate: Some(b"certificate".to_vec()),
        }
    }

    fn region() -> FakeAws {
        let aws = FakeAws::new();
        aws.set_cluster(ClusterInfo {
            arn: "arn:aws:eks:us-west-2:1:cluster/demo".to_owned(),
            endpoint: "https://api.example.com".to_owned(),
            version: "1.33".to_owned(),
            ..ClusterInfo::default()
        });
        aws
    }

    async fn found(aws: &FakeAws, options: &Options) -> Result<Discovered, StartupError> {
        discover(&aws.ports(), options, REGION, &kubernetes()).await
    }

    /// AW24.1.4, AW24.1.5
    #[tokio::test(start_paused = true)]
    async fn what_is_set_is_not_asked_for() {
        let aws = region();
        let set = Options {
            cluster_endpoint: Some("https://set.example.com".to_owned()),
            cluster_ca_bundle: Some("c2V0".to_owned()),
            ..Options::for_cluster("demo")
        };
        let discovered = found(&aws, &set).await.unwrap();
        assert_eq!(aws.calls("DescribeCluster"), 0);
        assert_eq!(discovered.cluster.endpoint, "https://set.example.com");
        assert_eq!(discovered.cluster.ca_bundle.as_deref(), Some("c2V0"));
        assert_eq!(
            (discovered.version.to_string(), discovered.shifted_cluster),
            ("1.32".to_owned(), None)
        );

        let asked = Options {
            eks_control_plane: true,
            zonal_shift: true,
            ..Options::for_cluster("demo")
        };
        let discovered = found(&aws, &asked).await.unwrap();
        assert_eq!(discovered.cluster.endpoint, "https://api.example.com");
        assert_eq!(discovered.cluster.ca_bundle.as_deref(), Some("Y2VydGlmaWNhdGU="));
        assert_eq!(discovered.version.to_string(), "1.33");
        assert!(discovered.shifted_cluster.is_some_and(|arn| arn.ends_with("demo")));
    }

    /// AW24.1.4
    #[tokio::test(start_paused = true)]
    async fn without_an_answer_nothing_begins() {
        let options = Options::for_cluster("demo");
        let denied = || AwsError::new("UnauthorizedOperation", "no");
        let aws = region();
        aws.fail("DescribeInstanceTypes", denied());
        assert!(matches!(found(&aws, &options).await, Err(StartupError::NoAccess(_))));
        aws.fail("DescribeInstanceTypes", AwsError::no_answer("no such host"));
        assert!(matches!(found(&aws, &options).await, Err(StartupError::NoAnswer(_))));
        aws.fail("DescribeInstanceTypes", AwsError::new("DryRunOperation", "fine"));
        assert!(found(&aws, &options).await.is_ok());
        aws.fail("DescribeCluster", denied());
        let failed = found(&aws, &options).await;
        assert!(matches!(failed, Err(error @ StartupError::NoCluster { .. }) if !error.is_final()));
        aws.set_cluster(ClusterInfo::default());
        assert!(matches!(found(&aws, &options).await, Err(StartupError::Unsaid { .. })));
        let bare = FromKubernetes {
            ca_certificate: None,
            ..kubernetes()
        };
        let failed = discover(&region().ports(), &options, REGION, &bare).await;
        assert!(
            failed.is_err_and(|error| error.is_final()),
            "nobody else can name the certificate"
        );
        let odd = FromKubernetes {
            version: "new".to_owned(),
            ..kubernetes()
        };
        let failed = discover(&region().ports(), &options, REGION, &odd).await;
        assert!(matches!(failed, Err(StartupError::Version(_))));
    }
}
