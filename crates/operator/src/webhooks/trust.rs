//! Whoever asks a webhook has to know the authority of its certificate.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::{Value, json};
use tracing::info;

use super::WebhookError;

const REGISTRATION: &str = "admissionregistration.k8s.io";
const MUTATING: [&str; 2] = [
    "defaulting.webhook.karpenter.sh",
    "defaulting.webhook.karpenter.k8s.aws",
];
const VALIDATING: [&str; 3] = [
    "validation.webhook.karpenter.sh",
    "validation.webhook.karpenter.k8s.aws",
    "validation.webhook.config.karpenter.sh",
];
/// The kinds that were there in v1beta1.
pub const DEFINITIONS: [&str; 3] = [
    "nodepools.karpenter.sh",
    "nodeclaims.karpenter.sh",
    "ec2nodeclasses.karpenter.k8s.aws",
];

/// Writes the authorities to all configurations and definitions of ours that are there and ask for it.
pub async fn spread(client: &Client, authorities: &str) -> Result<(), WebhookError> {
    let bundle = STANDARD.encode(authorities);
    let kinds: [(&str, &str, &[&str]); 3] = [
        (REGISTRATION, "MutatingWebhookConfiguration", &MUTATING),
        (REGISTRATION, "ValidatingWebhookConfiguration", &VALIDATING),
        ("apiextensions.k8s.io", "CustomResourceDefinition", &DEFINITIONS),
    ];
    let mut failed = None;
    for (group, kind, names) in kinds {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        for name in names {
            // One that cannot be written keeps no other from it.
            if let Err(cause) = tell(&api, name, &bundle).await {
                let object = format!("{kind} {name}");
                failed = Some(WebhookError::Trust { object, cause });
            }
        }
    }
    failed.map_or(Ok(()), Err)
}

async fn tell(api: &Api<DynamicObject>, name: &str, bundle: &str) -> Result<(), kube::Error> {
    let found = match api.get(name).await {
        Ok(found) => found,
        // Not there, or a server that knows no webhooks at all.
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
        Err(error) => return Err(error),
    };
    let Some(patch) = patch(&json!(found), bundle) else {
        return Ok(());
    };
    let patch: Patch<()> = Patch::Json(serde_json::from_value(patch).map_err(kube::Error::SerdeError)?);
    api.patch(name, &PatchParams::default(), &patch).await?;
    info!(object = name, "told whom to trust");
    Ok(())
}

/// What has to change about a configuration or definition for it to trust these authorities alone. The version goes along:
/// places in a list are only what they were in the object that was looked at.
fn patch(object: &Value, bundle: &str) -> Option<Value> {
    let webhooks = object.get("webhooks").and_then(Value::as_array).into_iter().flatten();
    let mut places: Vec<String> = webhooks
        .enumerate()
        .map(|(index, _)| format!("/webhooks/{index}/clientConfig"))
        .collect();
    if object.pointer("/spec/conversion/strategy") == Some(&json!("Webhook")) {
        places.push("/spec/conversion/webhook/clientConfig".to_owned());
    }
    let mut steps = vec![json!({
        "op": "test", "path": "/metadata/resourceVersion", "value": object["metadata"]["resourceVersion"],
    })];
    for place in places {
        let asks = object.pointer(&place);
        if asks.is_some_and(|asks| asks.get("caBundle") != Some(&json!(bundle))) {
            steps.push(json!({ "op": "add", "path": format!("{place}/caBundle"), "value": bundle }));
        }
    }
    (steps.len() > 1).then_some(Value::Array(steps))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(object: Value, expected: &[&str]) {
        let steps = patch(&object, "new");
        let steps = steps.as_ref().and_then(Value::as_array).into_iter().flatten();
        let places: Vec<&str> = steps.filter_map(|step| step["path"].as_str()).collect();
        assert_eq!(places, expected);
    }

    #[test]
    fn only_those_who_ask_and_do_not_know_are_told() {
        let asks = |bundle: Option<&str>| json!({"clientConfig": {"caBundle": bundle, "url": "https://127.0.0.1"}});
        check(json!({"metadata": {}}), &[]);
        check(json!({"webhooks": [asks(Some("new")), asks(Some("new"))]}), &[]);
        check(
            json!({"webhooks": [asks(Some("new")), asks(Some("old")), {"clientConfig": {}}]}),
            &[
                "/metadata/resourceVersion",
                "/webhooks/1/clientConfig/caBundle",
                "/webhooks/2/clientConfig/caBundle",
            ],
        );
        let definition =
            |strategy: &str| json!({"spec": {"conversion": {"strategy": strategy, "webhook": {"clientConfig": {}}}}});
        check(definition("None"), &[]);
        check(
            definition("Webhook"),
            &[
                "/metadata/resourceVersion",
                "/spec/conversion/webhook/clientConfig/caBundle",
            ],
        );
    }
}
