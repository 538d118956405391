//! The control plane that other tests lean on comes up and goes away.

use testkit::{ControlPlane, Parts};

#[tokio::test]
async fn an_api_server_answers_and_ends_with_its_owner() {
    let plane = ControlPlane::start(Parts::ApiServer)
        .await
        .expect("the control plane starts");
    let client = plane.client().await.expect("its kubeconfig is good");
    let version = client.apiserver_version().await.expect("it answers");
    assert_eq!(version.major, "1");

    let data = plane.data().to_owned();
    drop(plane);
    assert!(!data.exists(), "nothing is left of {}", data.display());
    client.apiserver_version().await.expect_err("nobody answers any more");
}
