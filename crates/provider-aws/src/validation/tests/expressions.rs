use std::collections::BTreeMap;

use api::aws::KubeletConfiguration;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::*;

fn gate(open: bool) -> impl FnOnce(&mut crate::Foundation) {
    move |foundation| {
        foundation.options = Arc::new(Options {
            node_class_cel: open,
            ..samples::options()
        });
    }
}

fn max_pods(text: &str) -> KubeletConfiguration {
    KubeletConfiguration {
        max_pods: Some(IntOrString::String(text.to_owned())),
        ..KubeletConfiguration::default()
    }
}

fn kube_reserved(name: &str, text: &str) -> KubeletConfiguration {
    KubeletConfiguration {
        kube_reserved: Some(BTreeMap::from([(name.to_owned(), text.to_owned())])),
        ..KubeletConfiguration::default()
    }
}

fn system_reserved(name: &str, text: &str) -> KubeletConfiguration {
    KubeletConfiguration {
        system_reserved: Some(BTreeMap::from([(name.to_owned(), text.to_owned())])),
        ..KubeletConfiguration::default()
    }
}

async fn judged(validator: &Validator, kubelet: KubeletConfiguration) -> Judged {
    let mut class = samples::ready_class();
    class.spec.kubelet = Some(kubelet);
    validator.judge(&class, &[]).await
}

/// AW24.6.14
#[tokio::test(start_paused = true)]
async fn expressions_have_to_yield_numbers_on_every_type() {
    let (aws, validator) = stocked(gate(true)).await;
    let table = [
        (max_pods("vcpus *"), "KubeletExpressionInvalid", "spec.kubelet.maxPods"),
        (
            max_pods("cpus * 10"),
            "KubeletExpressionInvalid",
            "\"cpus\" is not known",
        ),
        (max_pods("vcpus > 4"), "KubeletExpressionInvalid", "it yields bool"),
        (
            kube_reserved("memory", "memory * 0.1"),
            "KubeletExpressionInvalid",
            "spec.kubelet.kubeReserved.memory",
        ),
        (
            system_reserved("cpu", "vcpus * 10m"),
            "KubeletExpressionInvalid",
            "spec.kubelet.systemReserved.cpu",
        ),
        // Only the largest of the types has more than a hundred cores.
        (
            max_pods("100 - vcpus"),
            "KubeletExpressionEvaluationFailed",
            "yields -28 for m6idn.32xlarge",
        ),
        (
            max_pods("100 / (vcpus == 32 ? 0 : 1)"),
            "KubeletExpressionEvaluationFailed",
            "has no value for g4dn.8xlarge",
        ),
        (
            max_pods("vcpus * 1000000000"),
            "KubeletExpressionEvaluationFailed",
            "which is no number of pods",
        ),
        (
            kube_reserved("cpu", "100 - vcpus"),
            "KubeletExpressionEvaluationFailed",
            "yields -28, which cannot be set aside for m6idn.32xlarge",
        ),
        (
            system_reserved("memory", "100 / (vcpus == 32 ? 0 : 1)"),
            "KubeletExpressionEvaluationFailed",
            "spec.kubelet.systemReserved.memory",
        ),
    ];
    for (kubelet, expected, part) in table {
        let found = judged(&validator, kubelet).await;
        assert_eq!(reason(&found), Some(expected), "{part}");
        assert!(message(&found).contains(part), "{part} in {}", message(&found));
    }
    assert_eq!(aws.calls("CreateLaunchTemplate"), 0);
    let good = KubeletConfiguration {
        max_pods: Some(IntOrString::String("min(max_pods, 110)".to_owned())),
        system_reserved: Some(BTreeMap::from([("cpu".to_owned(), "vcpus * 10".to_owned())])),
        ..kube_reserved("memory", "255 + 11 * max_pods")
    };
    assert_eq!(reason(&judged(&validator, good).await), Some("Valid"));
}

/// AW24.6.14
#[tokio::test(start_paused = true)]
async fn before_types_are_known_nothing_is_said_of_expressions() {
    let aws = FakeAws::new();
    let mut foundation = samples::foundation(&aws);
    gate(true)(&mut foundation);
    let validator = Validator::new(Arc::new(Services::new(foundation)));
    let open = judged(&validator, max_pods("vcpus * 10")).await;
    assert_eq!(open.verdict, None);
    assert!(matches!(
        open.failure,
        Some(ValidationError::Types(CatalogError::NoTypes))
    ));
}

/// AW24.6.15
#[tokio::test(start_paused = true)]
async fn without_the_gate_expressions_are_refused_and_figures_are_not() {
    let (_, validator) = stocked(gate(false)).await;
    for kubelet in [
        max_pods("vcpus * 10"),
        max_pods("10"),
        kube_reserved("memory", "255 + 11 * max_pods"),
        system_reserved("cpu", "vcpus *"),
    ] {
        let found = judged(&validator, kubelet).await;
        assert_eq!(reason(&found), Some("KubeletExpressionsDisabled"));
        assert!(message(&found).contains("--aws-feature-gates=NodeClassCEL=true"));
    }
    let figures = KubeletConfiguration {
        max_pods: Some(IntOrString::Int(10)),
        ..kube_reserved("memory", "255Mi")
    };
    assert_eq!(reason(&judged(&validator, figures).await), Some("Valid"));
}
