//! Kubelet settings that depend on the instance type, from the class to the instance.

use api::aws::KubeletConfiguration;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::*;

fn kubelet() -> KubeletConfiguration {
    let amount = |name: &str, text: &str| Some([(name.to_owned(), text.to_owned())].into());
    KubeletConfiguration {
        max_pods: Some(IntOrString::String("max_pods - 9".to_owned())),
        kube_reserved: amount("cpu", "vcpus * 35"),
        system_reserved: amount("memory", "max_pods * 10"),
        ..KubeletConfiguration::default()
    }
}

async fn scene(gate: bool) -> Scene {
    let scene = scene_with(|foundation| {
        foundation.options = Arc::new(Options {
            node_class_cel: gate,
            ..samples::options()
        });
    })
    .await;
    scene.change_class(|class| class.spec.kubelet = Some(kubelet()));
    scene
}

fn user_data(scene: &Scene) -> Vec<String> {
    let decoded = |text: &str| String::from_utf8(STANDARD.decode(text).unwrap()).unwrap();
    let templates = scene.aws.templates();
    templates.iter().map(|template| decoded(&template.user_data)).collect()
}

/// AW24.9.16
#[tokio::test(start_paused = true)]
async fn an_instance_is_told_the_figures_that_were_planned_with() {
    let scene = scene(true).await;
    let launched = scene.launched(&request("one", on_demand("m5.xlarge"))).await;
    let catalog = scene.provider.catalog(&pool()).await.unwrap();
    let shape = catalog.iter().find(|shape| shape.name == "m5.xlarge").unwrap();
    assert_eq!(launched.capacity.get("pods"), Quantity::from_int(49));
    assert_eq!(shape.overhead.kube_reserved.get("cpu").to_string(), "140m");
    assert_eq!(shape.overhead.system_reserved.get("memory").to_string(), "496Mi");
    let [text] = <[String; 1]>::try_from(user_data(&scene)).expect("there is one template");
    for figure in ["maxPods: 49", "cpu: 140m", "memory: 496Mi"] {
        assert!(text.contains(figure), "{figure} in {text}");
    }
    let types = Requirement::one_of(labels::INSTANCE_TYPE, ["m5.large", "m5.xlarge"]);
    let on_demand = Requirement::one_of(labels::CAPACITY_TYPE, ["on-demand"]);
    scene.launched(&request("two", [types, on_demand])).await;
    let texts = user_data(&scene);
    assert_eq!(texts.len(), 2, "each type has its own figures");
    let small = texts
        .iter()
        .find(|text| text.contains("maxPods: 20"))
        .expect("that of m5.large");
    assert!(small.contains("cpu: 70m") && small.contains("memory: 208Mi"), "{small}");
}

/// AW24.9.16
#[tokio::test(start_paused = true)]
async fn without_the_gate_no_expression_reaches_an_instance() {
    let scene = scene(false).await;
    let launched = scene.launched(&request("one", on_demand("m5.xlarge"))).await;
    assert_eq!(launched.capacity.get("pods"), Quantity::from_int(58));
    let [text] = <[String; 1]>::try_from(user_data(&scene)).expect("there is one template");
    assert!(text.contains("maxPods: 58"), "{text}");
    assert!(!text.contains("Reserved") && !text.contains("vcpus"), "{text}");
}
