use super::*;
use crate::ports::TypeOffering;

fn overlay(price: &str) -> Arc<NodeOverlay> {
    let written = json!({
        "apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": {"name": "own"},
        "spec": {
            "requirements": [{"key": labels::INSTANCE_TYPE, "operator": "In", "values": ["m99.large"]}],
            "price": price,
        },
        "status": {"conditions": [{
            "type": "ValidationSucceeded", "status": "True", "reason": "ValidationSucceeded", "message": "",
            "lastTransitionTime": "2024-01-01T00:00:00Z",
        }]},
    });
    Arc::new(serde_json::from_value(written).expect("an overlay"))
}

async fn unpriced(node_overlay: bool) -> Scene {
    let scene = scene_with(|foundation| foundation.node_overlay = node_overlay).await;
    let sold = TypeOffering {
        instance_type: "m99.large".to_owned(),
        zone: "us-west-2a".to_owned(),
    };
    scene
        .aws
        .set_types(vec![samples::plain("m99.large", 2, 8192, 3, 10)], vec![sold]);
    scene.services.catalog.refresh_types().await.unwrap();
    scene
}

/// AW24.10.8
#[tokio::test(start_paused = true)]
async fn a_type_that_aws_names_no_price_for_is_launched_at_the_price_of_an_overlay() {
    let scene = unpriced(true).await;
    let wanted = request("one", on_demand("m99.large"));
    let refused = scene.launch(&wanted).await.unwrap_err();
    assert!(
        matches!(refused, ProviderError::InsufficientCapacity { .. }),
        "{refused:?}"
    );
    *scene.objects.overlays.lock() = vec![overlay("0.5")];
    let launched = scene.launched(&wanted).await;
    assert_eq!(scene.info(&launched).instance_type, "m99.large");
    let catalog = scene.provider.catalog(&pool()).await.unwrap();
    assert_eq!(catalog[0].available().next().map(|offering| offering.price), Some(0.5));
    *scene.objects.overlays.lock() = vec![overlay("0.75")];
    let catalog = scene.provider.catalog(&pool()).await.unwrap();
    assert_eq!(catalog[0].available().next().map(|offering| offering.price), Some(0.75));

    let without_gate = unpriced(false).await;
    *without_gate.objects.overlays.lock() = vec![overlay("0.5")];
    let catalog = without_gate.provider.catalog(&pool()).await.unwrap();
    assert_eq!(catalog[0].available().count(), 0);
}
