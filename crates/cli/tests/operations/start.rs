//! A controller whose cluster does not answer: what it says, and how it ends.

use testkit::{Process, eventually};

use crate::server::Live;

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_waits_for_its_cluster_and_ends_when_told_to() {
    let folder = tempfile::tempdir().expect("a folder");
    let kubeconfig = folder.path().join("kubeconfig");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{{name: x, context: {{cluster: x, user: x}}}}]\n\
         clusters: [{{name: x, cluster: {{server: 'http://127.0.0.1:{}'}}}}]\nusers: [{{name: x, user: {{token: x}}}}]\n",
        testkit::free_port()
    );
    std::fs::write(&kubeconfig, text).expect("a file");
    let mut process = Process::controller(env!("CARGO_BIN_EXE_karpenter"), &kubeconfig).arguments(&[
        "--cloud-provider",
        "sim",
        "--bind-address",
        "127.0.0.1",
        "--log-level",
        "error",
    ]);
    process.start();
    until_told(
        &process,
        &["503 ", "[-]api-server failed: the API server does not answer: "],
    )
    .await;
    // As people look for it: kubectl logs ... | grep -i error, and with the log turned down to errors.
    let log = process.log();
    let waits = log.lines().find(|line| line.contains("\"step\":\"api-server\""));
    let waits = waits.unwrap_or_else(|| panic!("nothing is said of the step: {log}"));
    for part in [
        "\"level\":\"ERROR\"",
        "start-up waits",
        "\"error\":\"the API server does not answer",
    ] {
        assert!(waits.contains(part), "{part} is not in {waits}");
    }
    let alive = Process::ask(process.health_port(), "GET", "/healthz").expect("an answer");
    assert!(alive.starts_with("HTTP/1.1 200"), "nobody is to restart it: {alive}");
    assert_eq!(process.stop(), Some(0));
}

/// A rolling update must not cost the nodes their controller: the old one gives the lease back.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_gives_the_lease_back() {
    let live = Live::start(&api::crds::all(api::crds::Variant::Kwok)).await;
    let mut process = Process::controller(env!("CARGO_BIN_EXE_karpenter"), &live.folder().join("kubeconfig"))
        .arguments(&["--cloud-provider", "sim", "--bind-address", "127.0.0.1"])
        .variable("SYSTEM_NAMESPACE", "kube-system");
    process.start();
    eventually("it leads", async || {
        let log = process.log();
        if log.contains("started controllers") {
            Ok(())
        } else {
            Err(log)
        }
    })
    .await;
    assert_eq!(process.stop(), Some(0));
    let log = process.log();
    assert!(log.contains("released leader lease"), "{log}");
}

/// Waits until the readiness probe is told all of this.
pub async fn until_told(process: &Process, wanted: &[&str]) {
    eventually("the probe is told what is missing", async || {
        let told = Process::ask(process.health_port(), "GET", "/readyz?verbose").map_err(|error| error.to_string())?;
        if wanted.iter().all(|part| told.contains(part)) {
            Ok(())
        } else {
            Err(format!("{told}\n{}", process.log()))
        }
    })
    .await;
}
