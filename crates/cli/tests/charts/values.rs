//! Which values are taken, and what is said of those that are not.

use std::collections::BTreeSet;

use crate::{
    earlier,
    helm::{environment, helm, object, template, try_template},
};

#[track_caller]
fn refusal(arguments: &[&str]) -> String {
    let output = try_template(arguments);
    assert!(!output.status.success(), "{arguments:?} is accepted");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_cluster_has_to_be_named() {
    let said = refusal(&[]);
    assert!(said.contains("settings.clusterName is empty"), "{said}");
}

/// Values where an earlier chart had them, and what is said of each.
const MOVED: [(&str, &str); 21] = [
    ("clusterName=c", "clusterName is now settings.clusterName"),
    (
        "clusterEndpoint=https://e",
        "clusterEndpoint is now settings.clusterEndpoint",
    ),
    (
        "controller.clusterName=c",
        "controller.clusterName is now settings.clusterName",
    ),
    (
        "controller.clusterEndpoint=https://e",
        "controller.clusterEndpoint is now settings.clusterEndpoint",
    ),
    ("controller.replicas=1", "controller.replicas is now replicas"),
    (
        "controller.nodeSelector.a=b",
        "controller.nodeSelector is now nodeSelector",
    ),
    (
        "controller.tolerations[0].operator=Exists",
        "controller.tolerations is now tolerations",
    ),
    (
        "controller.affinity.nodeAffinity.a=b",
        "controller.affinity is now affinity",
    ),
    ("controller.logLevel=debug", "controller.logLevel is now logLevel"),
    (
        "controller.outputPaths[0]=stderr",
        "controller.outputPaths is now logOutputPaths",
    ),
    (
        "controller.errorOutputPaths[0]=stdout",
        "controller.errorOutputPaths is now logErrorOutputPaths",
    ),
    (
        "controller.batchMaxDuration=1s",
        "controller.batchMaxDuration is now settings.batchMaxDuration",
    ),
    (
        "controller.batchIdleDuration=2s",
        "controller.batchIdleDuration is now settings.batchIdleDuration",
    ),
    (
        "settings.aws.clusterName=c",
        "settings.aws.clusterName is now settings.clusterName",
    ),
    (
        "settings.aws.clusterEndpoint=https://e",
        "settings.aws.clusterEndpoint is now settings.clusterEndpoint",
    ),
    (
        "settings.aws.clusterCABundle=QQ",
        "settings.aws.clusterCABundle is now settings.clusterCABundle",
    ),
    (
        "settings.aws.isolatedVPC=true",
        "settings.aws.isolatedVPC is now settings.isolatedVPC",
    ),
    (
        "settings.aws.vmMemoryOverheadPercent=0.1",
        "settings.aws.vmMemoryOverheadPercent is now settings.vmMemoryOverheadPercent",
    ),
    (
        "settings.aws.interruptionQueueName=q",
        "settings.aws.interruptionQueueName is now settings.interruptionQueue",
    ),
    (
        "settings.aws.interruptionQueue=q",
        "settings.aws.interruptionQueue is now settings.interruptionQueue",
    ),
    (
        "settings.aws.reservedENIs=1",
        "settings.aws.reservedENIs is now settings.reservedENIs",
    ),
];

/// Values that earlier charts had and nothing reads any more.
const GONE: [(&str, &str); 17] = [
    ("webhook.enabled=true", "webhook: webhooks are off"),
    (
        "defaultProvisioner.create=true",
        "defaultProvisioner: create a NodePool",
    ),
    ("logConfig.enabled=true", "logConfig: use logLevel"),
    ("logEncoding=console", "logEncoding: log lines are always JSON"),
    (
        "controller.logEncoding=console",
        "controller.logEncoding: log lines are always JSON",
    ),
    (
        "aws.defaultInstanceProfile=p",
        "aws.defaultInstanceProfile: use spec.instanceProfile",
    ),
    (
        "settings.assumeRoleARN=r",
        "settings.assumeRoleARN: let the AWS configuration",
    ),
    (
        "settings.aws.assumeRoleARN=r",
        "settings.aws.assumeRoleARN: let the AWS configuration",
    ),
    (
        "settings.assumeRoleDuration=20m",
        "settings.assumeRoleDuration: the AWS configuration",
    ),
    (
        "settings.aws.assumeRoleDuration=20m",
        "settings.aws.assumeRoleDuration: the AWS configuration",
    ),
    (
        "settings.aws.defaultInstanceProfile=p",
        "settings.aws.defaultInstanceProfile: use spec.instanceProfile",
    ),
    (
        "settings.aws.enablePodENI=true",
        "settings.aws.enablePodENI: pod interfaces are found",
    ),
    (
        "settings.aws.enableENILimitedPodDensity=true",
        "settings.aws.enableENILimitedPodDensity: use spec.kubelet.maxPods",
    ),
    (
        "settings.aws.nodeNameConvention=ip-name",
        "settings.aws.nodeNameConvention: nodes are found",
    ),
    ("settings.aws.tags.a=b", "settings.aws.tags: use spec.tags"),
    (
        "settings.featureGates.drift=true",
        "settings.featureGates.drift: drift is always on",
    ),
    (
        "settings.featureGates.driftEnabled=true",
        "settings.featureGates.driftEnabled: drift is always on",
    ),
];

/// What Helm says after an installation with these values.
#[track_caller]
fn notes(arguments: &[&str]) -> String {
    let folder = earlier::copies();
    let chart = folder.path().join("karpenter");
    // `helm template` renders the notes only as part of an object.
    let object = "kind: ConfigMap\napiVersion: v1\ndata:\n  notes: {{ tpl (.Files.Get \"NOTES.txt\") . | toJson }}\n";
    std::fs::rename(chart.join("templates/NOTES.txt"), chart.join("NOTES.txt")).expect("the notes");
    std::fs::write(chart.join("templates/notes.yaml"), object).expect("a file");
    let chart = chart.to_str().expect("a path");
    let fixed = ["template", "karpenter", chart, "--show-only", "templates/notes.yaml"];
    let output = helm(&[&fixed, arguments].concat());
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {complaint}");
    let rendered = self::object(&String::from_utf8_lossy(&output.stdout), "ConfigMap");
    rendered["data"]["notes"].as_str().expect("text").to_owned()
}

fn lines_of(notes: &str, heading: &str) -> Vec<String> {
    let after = notes.lines().skip_while(|line| *line != heading).skip(1);
    let lines = after.take_while(|line| line.starts_with("  "));
    lines.map(|line| line.trim().to_owned()).collect()
}

const NO_EFFECT: &str = "Values of an earlier chart that have no effect where they stand:";
const NO_MEANING: &str = "Values of an earlier chart that mean nothing any more:";

#[test]
fn notes_name_every_value_of_an_earlier_chart() {
    let sets: Vec<&str> = MOVED.iter().chain(&GONE).map(|(set, _)| *set).collect();
    let notes = notes(&["--set", "settings.clusterName=demo", "--set", &sets.join(",")]);
    assert_eq!(
        lines_of(&notes, NO_EFFECT),
        MOVED.map(|(_, expected)| expected),
        "{notes}"
    );
    let gone = lines_of(&notes, NO_MEANING);
    assert_eq!(gone.len(), GONE.len(), "{notes}");
    for (line, (set, expected)) in gone.iter().zip(GONE) {
        assert!(line.starts_with(expected), "{set}: {line}");
    }
}

#[test]
fn notes_do_not_speak_of_what_holds_anyway() {
    let usual = "settings.aws.clusterName=demo,settings.aws.isolatedVPC=false,controller.logLevel=info,logEncoding=json,\
                 settings.assumeRoleDuration=15m,settings.aws.assumeRoleDuration=15m,settings.aws.assumeRoleARN=";
    let notes = notes(&["--set", "settings.clusterName=demo", "--set", usual]);
    assert!(!notes.contains("earlier chart"), "{notes}");
}

#[test]
fn values_of_earlier_charts_are_named_with_their_new_place() {
    let image = (
        "controller.image=x",
        "controller.image is now controller.image.repository",
    );
    for (set, expected) in MOVED.into_iter().chain([image]) {
        let said = refusal(&["--set", set]);
        assert!(said.contains(expected), "{set}: {said}");
    }
}

#[test]
fn all_that_has_moved_is_named_at_once() {
    let said = refusal(&["--set", "settings.aws.clusterName=c,settings.aws.isolatedVPC=true"]);
    assert!(
        said.contains("settings.aws.clusterName") && said.contains("settings.aws.isolatedVPC"),
        "{said}"
    );
}

/// The charts from 0.25 to 0.27 passed objects on. Here the objects would go, and their nodes with them.
#[test]
fn objects_in_values_are_refused() {
    let named = ["--set", "settings.clusterName=c"];
    let objects = r#"extraObjects=[{"apiVersion": "karpenter.sh/v1alpha5", "kind": "Provisioner"}]"#;
    let said = refusal(&[&named[..], &["--set-json", objects]].concat());
    assert!(
        said.contains("extraObjects is set") && said.contains("`karpenter convert`"),
        "{said}"
    );
    // As those charts had it by themselves.
    for empty in ["extraObjects=[]", "extraObjects=null"] {
        template(&[&named[..], &["--set-json", empty]].concat());
    }
}

/// §4.1: upstream's chart passes over them, and so do files and modules that have them rely on that.
#[test]
fn what_stands_where_nobody_looks_is_accepted() {
    let cases = [
        // Named in the notes.
        "settings.aws.clusterName=other,settings.aws.isolatedVPC=true",
        "controller.logLevel=debug,controller.outputPaths[0]=stderr",
        // The value stands in its new place, too, or is what holds anyway.
        "settings.aws.clusterName=demo",
        "settings.aws.isolatedVPC=false",
        "settings.aws.vmMemoryOverheadPercent=0.075",
        "controller.logLevel=info",
        // Nothing stands in its place any more.
        "webhook.enabled=true,webhook.port=8443",
        "logConfig.enabled=true,logConfig.logLevel.global=info",
        "logEncoding=console,settings.assumeRoleDuration=15m",
        "settings.aws.defaultInstanceProfile=p,settings.aws.enablePodENI=true",
        "settings.featureGates.drift=true",
        // Values of whoever wraps this chart.
        "global.region=eu-west-1,somethingElse=1",
    ];
    for set in cases {
        template(&["--set", "settings.clusterName=demo", "--set", set]);
    }
}

/// §4.1: what upstream's chart renders, and clusters run, is no mistake here.
#[test]
fn the_schema_accepts_what_upstreams_chart_applies() {
    let cases = [
        "tolerations=,affinity=,nodeSelector=,topologySpreadConstraints=,podSecurityContext=,strategy=,dnsConfig=",
        "additionalLabels=,podAnnotations=,imagePullSecrets=,extraVolumes=,controller.env=,controller.resources=,controller.sidecarContainer=",
        "logOutputPaths=stdout,logErrorOutputPaths=stderr",
        "imagePullPolicy=,dnsPolicy=,logLevel=,revisionHistoryLimit=null",
        "controller.image.digest=sha512:0123",
        // The program passes over variables that it cannot read.
        "settings.batchMaxDuration=10,settings.amiRefreshInterval=soon,settings.isolatedVPC=yes,settings.reservedENIs=some",
        "settings.interruptionQueue=7,settings.featureGates.nodeRepair=True,settings.featureGates.nodeOverlay=1",
    ];
    for set in cases {
        template(&["--set", "settings.clusterName=c", "--set", set]);
    }
    let numbers = "replicas=3,revisionHistoryLimit=2,controller.metrics.port=8000,podDisruptionBudget.maxUnavailable=50%,\
                   terminationGracePeriodSeconds=30,serviceAccount.create=true,hostNetwork=true";
    let rendered = template(&["--set", "settings.clusterName=c", "--set-string", numbers]);
    let deployment = object(&rendered, "Deployment");
    assert_eq!(deployment["spec"]["replicas"], 3);
    assert_eq!(deployment["spec"]["template"]["spec"]["hostNetwork"], true);
    assert_eq!(
        deployment["spec"]["template"]["spec"]["serviceAccountName"],
        "karpenter"
    );

    // Tools that pass values on as text mean what they say.
    let off = "hostNetwork=false,serviceAccount.create=false,flowSchemas.enabled=false,legacy.enabled=false,\
               legacy.webhooks.enabled=false,legacy.proactiveBinding=false";
    let rendered = template(&["--set", "settings.clusterName=c", "--set-string", off]);
    let plain = template(&["--set", "settings.clusterName=c,serviceAccount.create=false"]);
    assert_eq!(rendered, plain);
}

#[test]
fn the_schema_refuses_what_the_program_would() {
    let cases = [
        ("logLevel=trace", "/logLevel"),
        ("replicas=-1", "/replicas"),
        ("dnsPolicy=Sometimes", "/dnsPolicy"),
        ("imagePullPolicy=Often", "/imagePullPolicy"),
        ("tolerations=all", "/tolerations"),
        ("serviceAccount.create=maybe", "/serviceAccount/create"),
        ("controller.metrics.port=70000", "/controller/metrics/port"),
        ("settings.preferencePolicy=Perhaps", "/settings/preferencePolicy"),
        ("settings.minValuesPolicy=Loose", "/settings/minValuesPolicy"),
        ("settings.clusterEndpoint=api.example.com", "/settings/clusterEndpoint"),
        (
            "settings.vmMemoryOverheadPercent=-0.1",
            "/settings/vmMemoryOverheadPercent",
        ),
        ("settings.reservedENIs=-1", "/settings/reservedENIs"),
        (
            "settings.featureGates.nodeRepair=on",
            "/settings/featureGates/nodeRepair",
        ),
    ];
    for (set, path) in cases {
        let said = refusal(&["--set", "settings.clusterName=c", "--set", set]);
        assert!(said.contains(&format!("'{path}'")), "{set}: {said}");
    }
}

#[test]
fn values_reach_the_program_as_they_were_meant() {
    let cases = [
        ("settings.ignoreDRARequests=false", "IGNORE_DRA_REQUESTS", Some("false")),
        (
            "settings.vmMemoryOverheadPercent=0",
            "VM_MEMORY_OVERHEAD_PERCENT",
            Some("0"),
        ),
        (
            "settings.vmMemoryOverheadPercent=0.05",
            "VM_MEMORY_OVERHEAD_PERCENT",
            Some("0.05"),
        ),
        ("settings.reservedENIs=2", "RESERVED_ENIS", Some("2")),
        ("settings.isolatedVPC=true", "ISOLATED_VPC", Some("true")),
        ("settings.isolatedVPC=null", "ISOLATED_VPC", None),
        ("settings.isolatedVPC=false", "ISOLATED_VPC", None),
        ("settings.batchMaxDuration=1m30s", "BATCH_MAX_DURATION", Some("1m30s")),
        (
            "settings.clusterName=c-{{ .Release.Name }}",
            "CLUSTER_NAME",
            Some("c-karpenter"),
        ),
        (
            "settings.interruptionQueue=q-{{ .Values.settings.clusterName }}",
            "INTERRUPTION_QUEUE",
            Some("q-demo"),
        ),
        ("settings.interruptionQueue=", "INTERRUPTION_QUEUE", None),
        (
            "settings.awsFeatureGates.nodeClassCEL=true",
            "AWS_FEATURE_GATES",
            Some("NodeClassCEL=true"),
        ),
        ("logLevel=", "LOG_LEVEL", None),
        (
            "logOutputPaths={stdout,/logs/a}",
            "LOG_OUTPUT_PATHS",
            Some("stdout,/logs/a"),
        ),
        (
            "controller.env[0].name=ENABLE_PROFILING,controller.env[0].value=x",
            "ENABLE_PROFILING",
            Some("x"),
        ),
    ];
    for (set, name, expected) in cases {
        let rendered = template(&["--set", "settings.clusterName=demo", "--set", set]);
        let variables = environment(&rendered);
        let found = variables.iter().find(|(variable, _)| variable == name);
        assert_eq!(found.and_then(|(_, value)| value.as_deref()), expected, "{set}");
        assert_eq!(found.is_some(), expected.is_some(), "{set}");
    }
}

/// §4.4: what the chart leaves to `controller.env` and `controller.envFrom` is decided there.
#[test]
fn variables_of_the_user_stand_alone() {
    let own =
        "controller.env[0].name=ISOLATED_VPC,controller.env[1].name=LOG_LEVEL,controller.env[2].name=FEATURE_GATES";
    let rendered = template(&[
        "--set",
        "settings.clusterName=demo,settings.isolatedVPC=true",
        "--set",
        own,
    ]);
    let variables = environment(&rendered);
    let names: BTreeSet<&str> = variables.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names.len(), variables.len(), "a name stands there twice: {variables:?}");
    for name in ["ISOLATED_VPC", "LOG_LEVEL", "FEATURE_GATES"] {
        assert!(variables.contains(&(name.to_owned(), None)), "{name}: {variables:?}");
    }

    // A variable that the chart writes would hide that of a ConfigMap.
    let from = "controller.envFrom[0].configMapRef.name=settings";
    let rendered = template(&["--set", "settings.clusterName=demo", "--set", from]);
    let switches = [
        "DISABLE_CLUSTER_STATE_OBSERVABILITY",
        "DISABLE_DRY_RUN",
        "EKS_CONTROL_PLANE",
        "ENABLE_ZONAL_SHIFT",
        "ISOLATED_VPC",
    ];
    let variables = environment(&rendered);
    let written = variables.iter().filter(|(name, _)| switches.contains(&name.as_str()));
    assert_eq!(written.count(), 0, "{variables:?}");
}
