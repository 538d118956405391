//! The cluster, its parameters and its queue.

use aws_sdk_eks::types::{KubernetesNetworkConfigRequest, VpcConfigRequest};
use aws_sdk_ssm::types::ParameterType;

use crate::region::{CLUSTER, Moto};

#[tokio::test]
async fn the_cluster_is_described() {
    let moto = Moto::start().await;
    let network = moto.network().await;
    let eks = &moto.aws.eks;
    let missing = eks.cluster(CLUSTER).await.expect_err("no cluster yet");
    assert_eq!(missing.code, "ResourceNotFoundException");
    let subnets = VpcConfigRequest::builder().set_subnet_ids(Some(network.subnets));
    let services = KubernetesNetworkConfigRequest::builder().service_ipv4_cidr("10.100.0.0/16");
    aws_sdk_eks::Client::new(&moto.config)
        .create_cluster()
        .name(CLUSTER)
        .version("1.35")
        .role_arn("arn:aws:iam::123456789012:role/eks")
        .resources_vpc_config(subnets.build())
        .kubernetes_network_config(services.build())
        .send()
        .await
        .expect("a cluster");
    let found = eks.cluster(CLUSTER).await.expect("the cluster");
    assert!(found.arn.ends_with(":cluster/demo") && found.endpoint.starts_with("https://"));
    assert_eq!(found.version, "1.35");
    assert_eq!(found.service_cidr_v4.as_deref(), Some("10.100.0.0/16"));
}

#[tokio::test]
async fn parameters_are_read_by_name() {
    let moto = Moto::start().await;
    let ssm = &moto.aws.ssm;
    assert!(
        ssm.parameter("/own/image")
            .await
            .expect_err("no parameter yet")
            .is_not_found()
    );
    aws_sdk_ssm::Client::new(&moto.config)
        .put_parameter()
        .name("/own/image")
        .value("ami-1")
        .r#type(ParameterType::String)
        .send()
        .await
        .expect("a parameter");
    assert_eq!(ssm.parameter("/own/image").await, Ok("ami-1".to_owned()));
}

#[tokio::test]
async fn a_message_is_received_once_it_is_sent_and_gone_once_it_is_deleted() {
    let moto = Moto::start().await;
    let queue = &moto.aws.queue;
    assert!(queue.url(CLUSTER).await.expect_err("no queue yet").is_not_found());
    let client = aws_sdk_sqs::Client::new(&moto.config);
    client.create_queue().queue_name(CLUSTER).send().await.expect("a queue");
    let url = queue.url(CLUSTER).await.expect("the queue");
    let request = client
        .send_message()
        .queue_url(&url)
        .message_body("{\"version\":\"0\"}");
    request.send().await.expect("a message");
    let received = queue.receive(&url).await.expect("the message");
    let [message] = received.as_slice() else {
        panic!("one message: {received:?}");
    };
    assert_eq!(message.body, "{\"version\":\"0\"}");
    assert!(message.sent.is_some());
    assert_eq!(queue.delete(&url, &message.receipt).await, Ok(()));
    let gone = queue.delete(&format!("{url}-other"), &message.receipt).await;
    assert!(gone.expect_err("no such queue").is_not_found());
}
