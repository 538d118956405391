//! Credentials that are taken away and given anew while the controller runs.

use std::{fs, path::Path};

use k8s_openapi::api::{
    authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec},
    core::v1::{Secret, ServiceAccount},
    rbac::v1::ClusterRoleBinding,
};
use kube::{
    Api, Client,
    api::{DeleteParams, PostParams},
    config::Kubeconfig,
};
use serde_json::json;

use crate::{cluster::Cluster, controller::Controller};

const NAMESPACE: &str = "kube-system";
const ACCOUNT: &str = "karpenter";

/// An account with every right.
async fn create_account(client: &Client) {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), NAMESPACE);
    let account = serde_json::from_value(json!({ "metadata": { "name": ACCOUNT } })).expect("an account");
    let params = PostParams::default();
    accounts.create(&params, &account).await.expect("it is accepted");
    let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
    let binding = serde_json::from_value(json!({
        "metadata": { "name": ACCOUNT },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
        "subjects": [{ "kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE }],
    }));
    let binding = binding.expect("a binding");
    bindings.create(&params, &binding).await.expect("it is accepted");
}

/// A token that is good for as long as the secret of this name is there.
async fn token_bound_to(client: &Client, name: &str) -> String {
    let params = PostParams::default();
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    let secret = serde_json::from_value(json!({ "metadata": { "name": name } })).expect("a secret");
    let secret = secrets.create(&params, &secret).await.expect("it is accepted");
    let request = TokenRequest {
        spec: Some(TokenRequestSpec {
            bound_object_ref: Some(BoundObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Secret".to_owned()),
                name: Some(name.to_owned()),
                uid: secret.metadata.uid,
            }),
            ..TokenRequestSpec::default()
        }),
        ..TokenRequest::default()
    };
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), NAMESPACE);
    let answer = accounts.create_token_request(ACCOUNT, &params, &request).await;
    let status = answer.expect("a token is given").status;
    status.and_then(|status| status.token).expect("it has been given")
}

/// The same cluster by the token in a file, as the kubelet keeps one up to date for every pod.
fn kubeconfig_by_token(of: &Path, token: &Path) -> Kubeconfig {
    let mut config = Kubeconfig::read_from(of).expect("the kubeconfig of the control plane");
    let user = json!({ "tokenFile": token });
    for auth in &mut config.auth_infos {
        auth.auth_info = Some(serde_json::from_value(user.clone()).expect("a user"));
    }
    config
}

/// The old token is no longer good before the new one is there. Nothing ends, and once the new one is read the work goes
/// on where it was.
#[tokio::test]
async fn a_token_that_expires_stops_the_work_until_there_is_another() {
    let cluster = Cluster::start().await;
    create_account(&cluster.client).await;
    let folder = tempfile::tempdir().expect("a folder");
    let (token, own) = (folder.path().join("token"), folder.path().join("kubeconfig"));
    fs::write(&token, token_bound_to(&cluster.client, "first").await).expect("the folder is writable");
    let config = kubeconfig_by_token(cluster.plane.kubeconfig(), &token);
    let text = serde_json::to_string(&config).expect("a kubeconfig");
    fs::write(&own, text).expect("the folder is writable");

    let mut controller = Controller::for_cluster(&own);
    controller.start();
    cluster.apply_pool("general").await;
    cluster.create_deployment("inflate", "1").await;
    cluster.scale("inflate", 1).await;
    cluster.until_running(1).await;

    let secrets: Api<Secret> = Api::namespaced(cluster.client.clone(), NAMESPACE);
    let deleted = secrets.delete("first", &DeleteParams::default()).await;
    deleted.expect("the secret goes");
    let expired = fs::read_to_string(&token).expect("the token");
    cluster
        .eventually("the old token is refused", async || {
            let mut config = kubeconfig_by_token(cluster.plane.kubeconfig(), &token);
            let user = json!({ "token": expired });
            config.auth_infos[0].auth_info = Some(serde_json::from_value(user).expect("a user"));
            let config = kube::Config::from_custom_kubeconfig(config, &Default::default()).await;
            let client = Client::try_from(config.expect("a good kubeconfig")).expect("a client");
            let answer = Api::<ServiceAccount>::namespaced(client, NAMESPACE).get(ACCOUNT).await;
            match answer {
                Err(kube::Error::Api(status)) if status.code == 401 => Ok(()),
                other => Err(format!("{:?}", other.map(|account| account.metadata.name))),
            }
        })
        .await;
    cluster.scale("inflate", 20).await;
    fs::write(&token, token_bound_to(&cluster.client, "second").await).expect("the folder is writable");
    cluster.until_running(20).await;
    assert!(controller.runs(), "the same process did it all");

    cluster.scale("inflate", 0).await;
    cluster.until_empty().await;
}
