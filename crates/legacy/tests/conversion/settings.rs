//! The settings ConfigMap, Helm values, and labels in other objects.

use legacy::{CLUSTER_PLACEHOLDER, Change, Input, Options, ROLE_PLACEHOLDER, convert};
use serde_json::{Value, json};

use crate::fixtures::{TEMPLATE, inputs, is_admitted, is_settled, object, refused, to_v1, warns};

const CONFIG_MAP: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: karpenter-global-settings, namespace: karpenter, uid: x}
data:
  batchMaxDuration: 10s
  batchIdleDuration: 1s
  aws.clusterName: demo
  aws.clusterEndpoint: https://example.com
  aws.isolatedVPC: 'false'
  aws.vmMemoryOverheadPercent: '0.075'
  aws.interruptionQueueName: queue
  aws.reservedENIs: '1'
  aws.defaultInstanceProfile: usual
  aws.enableENILimitedPodDensity: 'false'
  aws.enablePodENI: 'false'
  aws.nodeNameConvention: ip-name
  aws.tags: '{\"team\":\"all\"}'
  featureGates.driftEnabled: 'true'
";

#[test]
fn the_settings_become_environment_variables_and_reach_the_classes() {
    let template = TEMPLATE.replace("  instanceProfile: nodes\n", "");
    let converted = to_v1(&format!("{CONFIG_MAP}---{template}"), &Options::default());
    let settings = object(&converted, "ConfigMap", "karpenter-global-settings");
    assert_eq!(
        *settings,
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "karpenter-global-settings", "namespace": "karpenter"},
            "data": {
                "BATCH_IDLE_DURATION": "1s",
                "BATCH_MAX_DURATION": "10s",
                "CLUSTER_ENDPOINT": "https://example.com",
                "CLUSTER_NAME": "demo",
                "INTERRUPTION_QUEUE": "queue",
                "ISOLATED_VPC": "false",
                "RESERVED_ENIS": "1",
                "VM_MEMORY_OVERHEAD_PERCENT": "0.075",
            },
        })
    );
    let class = &object(&converted, "EC2NodeClass", "default")["spec"];
    assert_eq!(class["instanceProfile"], "usual");
    assert_eq!(class["tags"], json!({"team": "all"}));
    assert_eq!(class["kubelet"], json!({"maxPods": 110}));
    assert!(warns(&converted, &Change::DensityWritten));
    assert!(warns(&converted, &Change::SettingsAreEnvironment));
}

#[test]
fn other_config_maps_are_none_of_our_business() {
    let other = CONFIG_MAP.replace("karpenter-global-settings", "mine");
    assert!(!to_v1(&other, &Options::default()).changes_anything());
}

/// Converts values by themselves; what follows them are objects.
fn values(yaml: &str) -> (Value, Vec<Value>, legacy::Conversion) {
    let converted = convert(&inputs(yaml), &Options::default()).unwrap_or_else(|refusals| panic!("{refusals:#?}"));
    is_admitted(&converted);
    is_settled(&converted, &Options::default());
    let mut objects = converted.objects().cloned();
    (objects.next().expect("the values"), objects.collect(), converted)
}

#[test]
fn values_of_the_deployment_guide_move_to_where_todays_chart_looks() {
    let (values, objects, converted) = values(
        "serviceAccount: {create: true, name: karpenter, annotations: {eks.amazonaws.com/role-arn: arn}}
controller:
  env: [{name: AWS_REGION, value: eu-west-1}, {name: VM_MEMORY_OVERHEAD, value: '0.1'}]
  nodeSelector: {pool: system}
  tolerations: []
  affinity: {}
  image: registry.example.com:5000/karpenter/controller:v0.4.3@sha256:abc
  clusterName: demo
  clusterEndpoint: https://example.com
webhook: {env: [], image: x}
defaultProvisioner:
  create: true
  ttlSecondsAfterEmpty: 300
  provider: {instanceProfile: nodes}
  requirements: []
  taints: []
  labels: {team: a}
",
    );
    assert_eq!(
        values,
        json!({
            "serviceAccount": {"create": true, "name": "karpenter", "annotations": {"eks.amazonaws.com/role-arn": "arn"}},
            "nodeSelector": {"pool": "system"},
            "controller": {
                "env": [{"name": "AWS_REGION", "value": "eu-west-1"}, {"name": "VM_MEMORY_OVERHEAD_PERCENT", "value": "0.1"}],
                "image": {"repository": "registry.example.com:5000/karpenter/controller"},
            },
            "settings": {"clusterName": "demo", "clusterEndpoint": "https://example.com"},
        })
    );
    assert_eq!(objects[0]["kind"], "NodePool");
    assert_eq!(objects[0]["spec"]["disruption"]["consolidateAfter"], "5m0s");
    assert_eq!(
        objects[0]["spec"]["template"]["metadata"]["labels"],
        json!({"team": "a"})
    );
    assert_eq!(objects[1]["kind"], "EC2NodeClass");
    assert_eq!(
        objects[1]["spec"]["subnetSelectorTerms"],
        json!([{"tags": {"kubernetes.io/cluster/demo": "*"}}])
    );
    assert!(warns(&converted, &Change::ProvisionerLeavesChart));
}

#[test]
fn a_chart_that_leaves_the_cluster_to_its_user_gets_placeholders() {
    let (_, objects, converted) = values(
        "controller: {clusterName: ''}\ndefaultProvisioner: {create: true, ttlSecondsAfterEmpty: 300, provider: {}}",
    );
    let class = &objects[1]["spec"];
    let key = format!("kubernetes.io/cluster/{CLUSTER_PLACEHOLDER}");
    assert_eq!(class["subnetSelectorTerms"][0]["tags"][key], "*");
    assert_eq!(class["role"], ROLE_PLACEHOLDER);
    assert!(warns(
        &converted,
        &Change::ClusterPlaceholder {
            placeholder: CLUSTER_PLACEHOLDER
        }
    ));
}

#[test]
fn values_of_the_last_releases_lose_their_aws_section() {
    let (values, _, converted) = values(
        "replicas: 2
logLevel: debug
logEncoding: console
affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: karpenter.sh/provisioner-name, operator: DoesNotExist}]}]}}}
controller:
  image: {repository: public.ecr.aws/karpenter/controller, tag: v0.31.0, digest: sha256:abc}
  logLevel: ''
  outputPaths: [stdout]
  batchMaxDuration: 20s
settings:
  batchIdleDuration: 2s
  assumeRoleARN: arn
  assumeRoleDuration: 15m
  aws:
    clusterName: demo
    assumeRoleARN: arn
    interruptionQueueName: queue
    reservedENIs: '0'
    tags: {team: all}
  featureGates: {driftEnabled: true}
",
    );
    assert_eq!(
        values,
        json!({
            "replicas": 2,
            "logLevel": "debug",
            "logOutputPaths": ["stdout"],
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "karpenter.sh/nodepool", "operator": "DoesNotExist"}]}]}}},
            "controller": {},
            "settings": {
                "batchIdleDuration": "2s",
                "batchMaxDuration": "20s",
                "clusterName": "demo",
                "interruptionQueue": "queue",
                "reservedENIs": "0",
            },
        })
    );
    let fields: Vec<&str> = converted
        .warnings
        .iter()
        .map(|warning| warning.field.as_str())
        .collect();
    for field in [
        "settings.aws.assumeRoleARN",
        "settings.assumeRoleARN",
        "settings.aws.tags",
        "settings.featureGates.driftEnabled",
        "logEncoding",
    ] {
        assert!(fields.contains(&field), "{field} in {fields:?}");
    }
}

/// Charts from 0.25 to 0.27.
#[test]
fn objects_in_values_follow_as_documents_of_their_own() {
    let yaml = "settings: {aws: {clusterName: demo, tags: {team: all}}}
extraObjects:
  - apiVersion: karpenter.sh/v1alpha5
    kind: Provisioner
    metadata: {name: default}
    spec: {providerRef: {name: default}, ttlSecondsAfterEmpty: 30}
  - apiVersion: karpenter.k8s.aws/v1alpha1
    kind: AWSNodeTemplate
    metadata: {name: default}
    spec: {subnetSelector: {a: b}, securityGroupSelector: {a: b}, instanceProfile: nodes}
  - apiVersion: v1
    kind: List
    items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: mine}}]
";
    let (new, objects, converted) = values(yaml);
    assert_eq!(new, json!({"settings": {"clusterName": "demo"}}));
    let kinds: Vec<&Value> = objects.iter().map(|object| &object["kind"]).collect();
    assert_eq!(kinds, ["NodePool", "EC2NodeClass", "ConfigMap"]);
    assert_eq!(objects[0]["spec"]["disruption"]["consolidateAfter"], "30s");
    assert_eq!(objects[1]["spec"]["tags"], json!({"team": "all"}));
    assert!(warns(&converted, &Change::ObjectsLeaveChart));
    let kept = |output: &legacy::Output| matches!(output, legacy::Output::Kept { .. });
    assert!(
        !converted.outputs.iter().any(kept),
        "an object would be printed with the text of the values: {:#?}",
        converted.outputs
    );

    let none = values("clusterName: demo\nextraObjects: []").1;
    assert!(none.is_empty());
}

#[test]
fn objects_that_only_the_old_chart_could_make_are_refused() {
    let yaml = "settings: {clusterName: demo}
extraObjects:
  - {apiVersion: karpenter.sh/v1alpha5, kind: Provisioner, metadata: {name: '{{ .Release.Name }}'}, spec: {}}
  - {metadata: {name: nameless}}
  - {apiVersion: v1, kind: List, items: [text]}
";
    let said = refused(yaml, &Options::default());
    let expected = [
        "extraObjects[0]: is a template",
        "extraObjects[1]: is no object",
        "extraObjects[2].items[0]: is no object",
    ];
    assert_eq!(said.len(), expected.len(), "{said:#?}");
    for (said, expected) in said.iter().zip(expected) {
        assert!(said.contains(expected), "{said}");
    }
    let said = refused("extraObjects: {a: b}", &Options::default());
    assert!(said[0].contains("extraObjects: is no list"), "{said:#?}");
}

#[test]
fn values_of_today_stay_as_they_are() {
    let today = "settings: {clusterName: demo, interruptionQueue: q}\ncontroller: {image: {repository: x, tag: 1.14.0}, resources: {}}";
    let converted = convert(&inputs(today), &Options::default()).expect("nothing is wrong");
    assert!(!converted.changes_anything());
    assert!(converted.recognized);
}

#[test]
fn labels_in_workloads_are_renamed_on_demand() {
    let deployment = "apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    metadata: {annotations: {karpenter.sh/do-not-evict: 'true'}}
    spec:
      nodeSelector: {karpenter.sh/provisioner-name: default, node.k8s.aws/capacity-type: spot}
      tolerations: [{key: karpenter.sh/provisioner-name, operator: Exists}]
      topologySpreadConstraints: [{topologyKey: karpenter.sh/provisioner-name}]
";
    let inputs: Vec<Input> = inputs(deployment);
    let kept = convert(&inputs, &Options::default()).expect("nothing is wrong");
    assert!(!kept.changes_anything() && !kept.recognized);
    let options = Options {
        rewrite_workloads: true,
        ..Options::default()
    };
    let converted = convert(&inputs, &options).expect("nothing is wrong");
    assert_eq!(
        object(&converted, "Deployment", "web")["spec"]["template"],
        json!({
            "metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}},
            "spec": {
                "nodeSelector": {"karpenter.sh/nodepool": "default", "karpenter.sh/capacity-type": "spot"},
                "tolerations": [{"key": "karpenter.sh/nodepool", "operator": "Exists"}],
                "topologySpreadConstraints": [{"topologyKey": "karpenter.sh/nodepool"}],
            },
        })
    );
    is_settled(&converted, &options);
}
