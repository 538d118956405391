//! A region of a test's own.

use std::{path::Path, process::Stdio};

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::{Credentials, provider::SharedCredentialsProvider};
use aws_sdk_ec2::types::Tag;
use provider_aws::ports::Aws;
use provider_aws_sdk::Connection;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

pub const REGION: &str = "us-west-2";
pub const DISCOVERY: &str = "karpenter.sh/discovery";
pub const CLUSTER: &str = "demo";

/// A running moto. It ends with this value, and also when the test is killed, because it then loses its input.
pub struct Moto {
    _server: Child,
    /// To set up what the ports cannot make.
    pub config: SdkConfig,
    pub aws: Aws,
}

impl Moto {
    pub async fn start() -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/moto/serve");
        let mut server = Command::new(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("bash runs");
        let output = server.stdout.take().expect("the output is ours");
        let endpoint = BufReader::new(output).lines().next_line().await;
        let endpoint = endpoint.expect("moto prints text").expect("moto prints its endpoint");
        let config = config(&endpoint);
        let connected = provider_aws_sdk::over(&config, &Connection::default()).expect("a region");
        Self {
            _server: server,
            config,
            aws: connected.aws,
        }
    }

    /// A network as users have it: a subnet in each of two zones and a group, all with the tag that discovery looks for.
    pub async fn network(&self) -> Network {
        let client = aws_sdk_ec2::Client::new(&self.config);
        let vpc = client
            .create_vpc()
            .cidr_block("10.0.0.0/16")
            .send()
            .await
            .expect("a VPC");
        let vpc = vpc.vpc.and_then(|vpc| vpc.vpc_id).expect("a VPC has an id");
        let mut subnets = Vec::new();
        for (zone, block) in [("a", "10.0.0.0/20"), ("b", "10.0.16.0/20")] {
            let request = client.create_subnet().vpc_id(&vpc).cidr_block(block);
            let request = request.availability_zone(format!("{REGION}{zone}"));
            let made = request.send().await.expect("a subnet");
            subnets.push(
                made.subnet
                    .and_then(|subnet| subnet.subnet_id)
                    .expect("a subnet has an id"),
            );
        }
        let request = client.create_security_group().group_name("nodes").description("nodes");
        let group = request.vpc_id(&vpc).send().await.expect("a security group");
        let group = group.group_id.expect("a group has an id");
        let tag = Tag::builder().key(DISCOVERY).value(CLUSTER).build();
        let resources = subnets.iter().chain([&group]).cloned().collect();
        let request = client.create_tags().set_resources(Some(resources)).tags(tag);
        request.send().await.expect("tags");
        Network { subnets, group }
    }
}

pub struct Network {
    pub subnets: Vec<String>,
    pub group: String,
}

fn config(endpoint: &str) -> SdkConfig {
    let credentials = Credentials::new("key", "secret", None, None, "test");
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new(REGION))
        .endpoint_url(endpoint)
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .http_client(provider_aws_sdk::http_client())
        .build()
}
