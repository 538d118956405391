use api::convert;
use k8s_openapi::api::core::v1::Pod as Written;
use model::Pod;
use model::pod::{PodClaim, PodClaimSource};
use serde_json::{Value, json};

use crate::object;

fn pod(spec: Value, status: Value) -> Pod {
    let written = json!({
        "metadata": { "name": "train", "namespace": "ml" },
        "spec": spec,
        "status": status,
    });
    convert::pod(&object::<Written>(written)).value
}

#[test]
fn a_pod_names_its_claims_and_the_ones_made_for_it() {
    let pod = pod(
        json!({
            "containers": [],
            "resourceClaims": [
                { "name": "gpu", "resourceClaimName": "shared" },
                { "name": "nic", "resourceClaimTemplateName": "nics" },
            ],
        }),
        json!({ "resourceClaimStatuses": [{ "name": "nic", "resourceClaimName": "train-nic-x7" }, { "name": "tpu" }] }),
    );
    let claim = |name: &str, source| PodClaim {
        name: name.to_owned(),
        source,
    };
    assert_eq!(
        pod.shape.resource_claims,
        [
            claim("gpu", PodClaimSource::Claim("shared".to_owned())),
            claim("nic", PodClaimSource::Template),
        ]
    );
    assert_eq!(pod.generated_claims["nic"].as_deref(), Some("train-nic-x7"));
    assert_eq!(pod.generated_claims["tpu"], None);
    assert!(pod.shape.claims_devices());
}

/// SC15.23.1: a claim of a container or of an init container, or of both, makes the pod one that claims devices.
#[test]
fn a_claim_of_any_container_counts() {
    let claiming = json!([{ "name": "c", "resources": { "claims": [{ "name": "gpu" }] } }]);
    let plain = json!([{ "name": "c" }]);
    for (containers, init, expected) in [
        (&claiming, &plain, true),
        (&plain, &claiming, true),
        (&claiming, &claiming, true),
        (&plain, &plain, false),
    ] {
        let pod = pod(json!({ "containers": containers, "initContainers": init }), json!({}));
        assert_eq!(pod.shape.claims_devices(), expected);
    }
}
