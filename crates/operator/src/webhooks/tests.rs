use std::net::Ipv4Addr;

use bytes::Bytes;
use clock::{SystemClock, VirtualClock};
use http::{Method, Request};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use kube_mem::ApiServer;
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use rustls_pki_types::{CertificateDer, ServerName, pem::PemObject};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsConnector;

use super::*;

const NAMESPACE: &str = "karpenter";

fn server(clock: &Arc<dyn Clock>) -> ApiServer {
    let server = ApiServer::builder()
        .clock(clock.clone())
        .seed(1)
        .without_managers()
        .build();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    post(&server, "/api/v1/namespaces", &namespace);
    for crd in api::crds::all(api::crds::Variant::Kwok) {
        post(
            &server,
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            &json!(crd),
        );
    }
    server
}

fn post(server: &ApiServer, path: &str, object: &Value) {
    let request = Request::builder()
        .method(Method::POST)
        .uri(path)
        .header("content-type", "application/json")
        .body(Bytes::from(object.to_string()));
    assert!(server.handle(request.expect("a request")).status().is_success());
}

fn webhooks(server: &ApiServer, clock: &Arc<dyn Clock>) -> Arc<Webhooks> {
    let address = Address {
        namespace: NAMESPACE.to_owned(),
        service: String::new(),
        host: Ipv4Addr::LOCALHOST.into(),
    };
    Arc::new(Webhooks::new(server.client(), clock.clone(), address, Rules::default()))
}

async fn secret(webhooks: &Webhooks) -> Secret {
    webhooks.secrets().get("karpenter-cert").await.expect("the Secret")
}

fn offered(webhooks: &Webhooks) -> Vec<CertificateDer<'static>> {
    webhooks.offered.current().expect("a certificate").cert.clone()
}

#[tokio::test]
async fn of_two_who_begin_at_once_one_certificate_is_left() {
    let clock: Arc<dyn Clock> = Arc::new(VirtualClock::starting_at(VirtualClock::EPOCH));
    let server = server(&clock);
    let (one, other) = (webhooks(&server, &clock), webhooks(&server, &clock));
    let begun = tokio::join!(one.look_after(), other.look_after());
    begun.0.expect("the first gets through");
    begun.1.expect("the second takes the first one's");
    assert_eq!(offered(&one), offered(&other));

    // Both found nothing, and both made something: the slower one takes what is there.
    let late = Identity::new(&one.address.names(), clock.now()).expect("an identity");
    let kept = other.store(None, late).await.expect("a conflict is no failure");
    assert!(kept == one.stored().await.expect("the Secret").1);
}

#[tokio::test(start_paused = true)]
async fn who_does_not_lead_writes_nothing_and_offers_what_the_leader_made() {
    let clock: Arc<dyn Clock> = Arc::new(VirtualClock::starting_at(VirtualClock::EPOCH));
    let server = server(&clock);
    let (leader, standby) = (webhooks(&server, &clock), webhooks(&server, &clock));
    let following = tokio::spawn({
        let standby = standby.clone();
        async move { standby.follow().await }
    });
    sleep(LOOK_FOR * 10).await;
    assert!(standby.stored().await.expect("an answer").0.is_none());
    assert!(!standby.is_ready());
    let leading = tokio::spawn({
        let leader = leader.clone();
        async move { leader.keep().await }
    });
    sleep(LOOK_FOR * 2).await;
    assert_eq!(offered(&standby), offered(&leader));
    following.abort();
    leading.abort();
}

#[tokio::test(start_paused = true)]
async fn certificates_are_renewed_in_time_and_the_old_authority_is_trusted_meanwhile() {
    let clock: Arc<dyn Clock> = Arc::new(VirtualClock::starting_at(VirtualClock::EPOCH));
    let webhooks = webhooks(&server(&clock), &clock);
    let look = async |days: u64| {
        tokio::time::advance(Duration::from_secs(days * 24 * 3600)).await;
        webhooks.look_after().await.expect("a look");
        let identity = webhooks.stored().await.expect("the Secret").1.expect("an identity");
        (identity.authorities(), offered(&webhooks))
    };
    let (authority, first) = look(0).await;
    assert_eq!(look(19).await, (authority.clone(), first.clone()));
    let (same, second) = look(1).await;
    assert!(same == authority && second != first);
    for _ in 0..14 {
        assert_eq!(look(20).await.0, authority);
    }
    // Day 305: the certificate of day 300 is offered on, and both authorities are trusted.
    let before = offered(&webhooks);
    let (both, unchanged) = look(5).await;
    assert!(both.ends_with(&authority) && both.len() > authority.len());
    assert_eq!(unchanged, before);
    let (still_both, signed_anew) = look(15).await;
    assert!(still_both == both && signed_anew != before);
}

#[tokio::test]
async fn a_secret_of_another_release_is_written_anew_and_keeps_what_else_it_has() {
    let clock: Arc<dyn Clock> = Arc::new(VirtualClock::starting_at(VirtualClock::EPOCH));
    let webhooks = webhooks(&server(&clock), &clock);
    let old: Secret = serde_json::from_value(json!({
        "metadata": {"name": "karpenter-cert", "labels": {"a": "b"}},
        "stringData": {"server-cert.pem": "x", "server-key.pem": "y", "ca-cert.pem": "z"},
    }))
    .expect("a Secret");
    webhooks
        .secrets()
        .create(&PostParams::default(), &old)
        .await
        .expect("it is accepted");
    webhooks.look_after().await.expect("a look");
    assert!(webhooks.is_ready());
    let stored = secret(&webhooks).await;
    assert_eq!(stored.metadata.labels.expect("labels")["a"], "b");
    let until: Timestamp =
        stored.metadata.annotations.expect("annotations")["compatibility.karpenter.sh/certificate-until"]
            .parse()
            .expect("a moment");
    assert_eq!(until, VirtualClock::EPOCH + SignedDuration::from_hours(30 * 24));
}

/// Status and body of a review, over TLS by somebody who trusts the given authorities alone.
async fn ask(port: u16, authorities: &str, path: &str, body: &str) -> (u16, String) {
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(authorities.as_bytes()) {
        roots.add(authority.expect("PEM")).expect("an authority");
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))
        .await
        .expect("it listens");
    let name = ServerName::try_from("karpenter.karpenter.svc").expect("a name");
    let connector = TlsConnector::from(Arc::new(config));
    let mut stream = connector.connect(name, stream).await.expect("it is trusted");
    let request = format!(
        "POST {path}?timeout=10s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.expect("it reads");
    let mut answer = Vec::new();
    // A peer may close without a word once it has answered.
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer).expect("text");
    let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status.expect("an answer has a status"), body.to_owned())
}

#[tokio::test]
async fn reviews_are_answered_over_tls() {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let server = server(&clock);
    let (leader, standby) = (webhooks(&server, &clock), webhooks(&server, &clock));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(standby.clone().serve(listener));
    assert!(!standby.is_ready());
    leader.look_after().await.expect("a look");
    let (_, found) = standby.stored().await.expect("the Secret");
    let identity = found.expect("what the leader made");
    standby.offer(&identity);

    let authorities = identity.authorities();
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {"uid": "1", "object": {
            "apiVersion": "karpenter.sh/v1alpha5", "kind": "Provisioner", "metadata": {"name": "default"},
            "spec": {"providerRef": {"name": "default"}, "weight": 101},
        }},
    });
    let (status, body) = ask(port, &authorities, "/validate/karpenter.sh", &review.to_string()).await;
    let answer: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!((status, &answer["response"]["allowed"]), (200, &json!(false)));
    assert_eq!(
        answer["response"]["status"]["message"],
        "spec.weight: is not between 1 and 100"
    );

    let malformed = ask(port, &authorities, "/validate/karpenter.sh", "{}").await;
    assert_eq!(malformed.0, 400, "{}", malformed.1);
    assert_eq!(ask(port, &authorities, "/elsewhere", "{}").await.0, 404);

    // A claim whose pool is gone is converted all the same.
    let claim = json!({
        "apiVersion": "karpenter.sh/v1beta1", "kind": "NodeClaim",
        "metadata": {"name": "a", "labels": {"karpenter.sh/nodepool": "gone"}},
        "spec": {"requirements": [], "nodeClassRef": {"name": "default"}},
    });
    let review = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": {"uid": "1", "desiredAPIVersion": "karpenter.sh/v1", "objects": [claim]},
    });
    let (status, body) = ask(port, &authorities, "/conversion/karpenter.sh", &review.to_string()).await;
    assert_eq!(status, 200, "{body}");
    assert!(body.contains(r#""status":"Success""#), "{body}");
}
