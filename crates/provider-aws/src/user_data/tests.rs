use expect_test::{Expect, expect};
use model::Effect;

use super::*;

fn bootstrap(family: AmiFamily) -> Bootstrap {
    Bootstrap {
        family,
        cluster_name: "demo".to_owned(),
        cluster_endpoint: "https://demo".to_owned(),
        ca_bundle: Some("Y2E=".to_owned()),
        service_cidr: Some("10.100.0.0/16".to_owned()),
        kubelet: KubeletConfiguration {
            max_pods: Some(IntOrString::Int(35)),
            cluster_dns: Some(vec!["10.100.0.10".to_owned()]),
            ..KubeletConfiguration::default()
        },
        labels: [("karpenter.sh/capacity-type", "spot"), ("team", "a")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
        taints: vec![Taint::unregistered()],
        instance_store_policy: None,
        custom: None,
        image_version: None,
    }
}

fn entries(pairs: &[(&str, &str)]) -> Option<BTreeMap<String, String>> {
    let entry = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    Some(pairs.iter().map(entry).collect())
}

/// Every kubelet setting that flags and TOML know.
fn everything() -> KubeletConfiguration {
    KubeletConfiguration {
        cluster_dns: Some(vec!["fd00::10".to_owned()]),
        max_pods: Some(IntOrString::Int(10)),
        pods_per_core: Some(4),
        system_reserved: entries(&[("memory", "1Gi"), ("cpu", "100m")]),
        kube_reserved: entries(&[("cpu", "200m")]),
        eviction_hard: entries(&[("memory.available", "5%")]),
        eviction_soft: entries(&[("memory.available", "10%")]),
        eviction_soft_grace_period: Some([("memory.available".to_owned(), "60s".into())].into()),
        eviction_max_pod_grace_period: Some(30),
        image_gc_high_threshold_percent: Some(80),
        image_gc_low_threshold_percent: Some(50),
        cpu_cfs_quota: Some(false),
        passed_on: BTreeMap::new(),
    }
}

#[track_caller]
fn check(bootstrap: &Bootstrap, expected: Expect) {
    expected.assert_eq(&bootstrap.text().expect("there is user data"));
}

/// AW24.12.7
#[test]
fn al2_calls_the_images_bootstrap_script() {
    check(
        &bootstrap(AmiFamily::Al2),
        expect![[r#"
            MIME-Version: 1.0
            Content-Type: multipart/mixed; boundary="//"

            --//
            Content-Type: text/x-shellscript; charset="us-ascii"

            #!/bin/bash -xe
            exec > >(tee /var/log/user-data.log|logger -t user-data -s 2>/dev/console) 2>&1
            /etc/eks/bootstrap.sh 'demo' --apiserver-endpoint 'https://demo' --b64-cluster-ca 'Y2E=' \
            --dns-cluster-ip '10.100.0.10' \
            --use-max-pods false \
            --kubelet-extra-args '--node-labels="karpenter.sh/capacity-type=spot,team=a" --register-with-taints="karpenter.sh/unregistered:NoExecute" --max-pods=35'
            --//--
        "#]],
    );
}

/// AW24.12.7
#[test]
fn al2_passes_every_kubelet_setting_as_a_flag() {
    let mut all = bootstrap(AmiFamily::Al2);
    all.kubelet = everything();
    all.taints.insert(0, Taint::new("team", "a", Effect::NoSchedule));
    all.instance_store_policy = Some(InstanceStorePolicy::Raid0);
    let text = all.text().unwrap();
    let (_, call) = text.split_once("/etc/eks/").unwrap();
    expect![[r#"
        bootstrap.sh 'demo' --apiserver-endpoint 'https://demo' --b64-cluster-ca 'Y2E=' \
        --ip-family ipv6 \
        --dns-cluster-ip 'fd00::10' \
        --use-max-pods false \
        --kubelet-extra-args '--node-labels="karpenter.sh/capacity-type=spot,team=a" --register-with-taints="team=a:NoSchedule,karpenter.sh/unregistered:NoExecute" --max-pods=10 --pods-per-core=4 --system-reserved="cpu=100m,memory=1Gi" --kube-reserved="cpu=200m" --eviction-hard="memory.available<5%" --eviction-soft="memory.available<10%" --eviction-soft-grace-period="memory.available=1m0s" --eviction-max-pod-grace-period=30 --image-gc-high-threshold=80 --image-gc-low-threshold=50 --cpu-cfs-quota=false' \
        --local-disks raid0
        --//--
    "#]]
    .assert_eq(call);
}

/// AW24.12.7
#[test]
fn al2_puts_the_users_parts_first() {
    let with = |custom: &str| {
        let mut al2 = bootstrap(AmiFamily::Al2);
        al2.custom = Some(custom.to_owned());
        al2.text()
    };
    let script = with("#!/bin/bash\necho hello\n").unwrap();
    let head = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//\"\n\n--//\n\
                Content-Type: text/x-shellscript; charset=\"us-ascii\"\n\n#!/bin/bash\necho hello\n\n--//\n";
    assert!(script.starts_with(head), "{script}");
    for headers in [
        "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"B\"",
        "Content-Type: multipart/mixed; boundary=\"B\"\nMIME-Version: 1.0",
    ] {
        let archive = format!("{headers}\n\n--B\nContent-Type: text/cloud-config\n\nx: y\n--B--\n");
        let merged = with(&archive).unwrap();
        assert!(
            merged.contains("--//\nContent-Type: text/cloud-config\n\nx: y\n--//\n"),
            "{merged}"
        );
    }
    assert_eq!(with("").unwrap(), bootstrap(AmiFamily::Al2).text().unwrap());
    assert!(matches!(
        with("Content-Type: text/plain\n\nx"),
        Err(UserDataError::Archive(_))
    ));
}

/// AW24.12.8
#[test]
fn al2023_gets_a_node_config() {
    let mut al2023 = bootstrap(AmiFamily::Al2023);
    al2023.instance_store_policy = Some(InstanceStorePolicy::Raid0);
    al2023.kubelet = everything();
    al2023.taints.insert(0, Taint::new("team", "a", Effect::NoSchedule));
    check(
        &al2023,
        expect![[r#"
            MIME-Version: 1.0
            Content-Type: multipart/mixed; boundary="//"

            --//
            Content-Type: application/node.eks.aws

            # Karpenter Generated NodeConfig
            apiVersion: node.eks.aws/v1alpha1
            kind: NodeConfig
            metadata: {}
            spec:
              cluster:
                apiServerEndpoint: https://demo
                certificateAuthority: Y2E=
                cidr: 10.100.0.0/16
                name: demo
              containerd: {}
              instance:
                localStorage:
                  strategy: RAID0
              kubelet:
                config:
                  clusterDNS:
                  - fd00::10
                  cpuCFSQuota: false
                  evictionHard:
                    memory.available: 5%
                  evictionMaxPodGracePeriod: 30
                  evictionSoft:
                    memory.available: 10%
                  evictionSoftGracePeriod:
                    memory.available: 1m0s
                  imageGCHighThresholdPercent: 80
                  imageGCLowThresholdPercent: 50
                  kubeReserved:
                    cpu: 200m
                  maxPods: 10
                  podsPerCore: 4
                  registerWithTaints:
                  - effect: NoSchedule
                    key: team
                    value: a
                  - effect: NoExecute
                    key: karpenter.sh/unregistered
                  systemReserved:
                    cpu: 100m
                    memory: 1Gi
                flags:
                - --node-labels="karpenter.sh/capacity-type=spot,team=a"

            --//--
        "#]],
    );
}

/// AW24.12.8
#[test]
fn al2023_merges_archives_yaml_and_scripts() {
    let with = |custom: &str| {
        let mut al2023 = bootstrap(AmiFamily::Al2023);
        al2023.custom = Some(custom.to_owned());
        al2023.text().unwrap()
    };
    let yaml = with("apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n");
    assert!(yaml.contains(
        "--//\nContent-Type: application/node.eks.aws\n\napiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n\n--//\n"
    ));
    let shell = with("#!/bin/bash\necho \"Hello, AL2023!\"\n");
    assert!(shell.contains("--//\nContent-Type: text/x-shellscript; charset=\"us-ascii\"\n\n#!/bin/bash\n"));
    let archive = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//\"\n\n--//\n\
                   Content-Transfer-Encoding: base64\nContent-Type: application/node.eks.aws\n\na: b\n--//\n\
                   Content-Type: text/x\n\nx\n--//\n";
    let merged = with(archive);
    assert!(merged.contains("--//\nContent-Transfer-Encoding: base64\nContent-Type: application/node.eks.aws\n\na: b\n--//\nContent-Type: text/x\n\nx\n--//\nContent-Type: application/node.eks.aws\n\n# Karpenter"), "{merged}");
    assert_eq!(with(""), bootstrap(AmiFamily::Al2023).text().unwrap());

    let mut lost = bootstrap(AmiFamily::Al2023);
    lost.service_cidr = None;
    assert_eq!(lost.text(), Err(UserDataError::NoServiceCidr));
}

/// AW24.12.9
#[test]
fn bottlerocket_settings_are_generated() {
    check(
        &bootstrap(AmiFamily::Bottlerocket),
        expect![[r#"
            [settings]
            [settings.kubernetes]
            api-server = 'https://demo'
            cluster-certificate = 'Y2E='
            cluster-name = 'demo'
            cluster-dns-ip = '10.100.0.10'
            max-pods = 35

            [settings.kubernetes.node-labels]
            'karpenter.sh/capacity-type' = 'spot'
            team = 'a'

            [settings.kubernetes.node-taints]
            'karpenter.sh/unregistered' = [':NoExecute']
        "#]],
    );
}

/// AW24.12.9
#[test]
fn bottlerocket_settings_of_the_user_are_merged() {
    let mut merged = bootstrap(AmiFamily::Bottlerocket);
    merged.kubelet = everything();
    merged.instance_store_policy = Some(InstanceStorePolicy::Raid0);
    merged.image_version = Some("v1.45.0".to_owned());
    merged
        .taints
        .push(Taint::new("karpenter.sh/unregistered", "x", Effect::NoSchedule));
    merged.custom = Some(
        r#"
        [settings.kubernetes]
        "unknown-setting" = "kept"
        api-server = 'replaceme'
        cloud-provider = "external"
        max-pods = 9999999999 # replaceme

        [settings.kubernetes.node-labels]
        "own" = "label"
        team = "replaceme"

        [settings.kubernetes.node-taints]
        "replace" = ["me:NoSchedule"]

        [settings.kubernetes.memory-manager-reserved-memory.0]
        enabled = true
        memory = "1Gi"

        [settings.bootstrap-commands.100-own]
        commands = [["apiclient", "set", "x"]]
        mode = "once"
        essential = false

        [settings.network]
        hostname = "it's.local"
        hosts = [["10.0.0.0", ["a.example.com", "b.example.com"]]]
        "#
        .to_owned(),
    );
    check(
        &merged,
        expect![[r#"
            [settings]
            [settings.bootstrap-commands]
            [settings.bootstrap-commands.000-mount-instance-storage]
            commands = [['apiclient', 'ephemeral-storage', 'init'], ['apiclient', 'ephemeral-storage', 'bind', '--dirs', '/var/lib/containerd', '/var/lib/kubelet', '/var/log/pods']]
            mode = 'always'
            essential = true

            [settings.bootstrap-commands.100-own]
            commands = [['apiclient', 'set', 'x']]
            mode = 'once'
            essential = false

            [settings.kubernetes]
            api-server = 'https://demo'
            cloud-provider = 'external'
            cluster-certificate = 'Y2E='
            cluster-name = 'demo'
            cluster-dns-ip = 'fd00::10'
            max-pods = 10
            eviction-max-pod-grace-period = 30
            image-gc-high-threshold-percent = '80'
            image-gc-low-threshold-percent = '50'
            cpu-cfs-quota-enforced = false
            unknown-setting = 'kept'

            [settings.kubernetes.node-labels]
            'karpenter.sh/capacity-type' = 'spot'
            own = 'label'
            team = 'a'

            [settings.kubernetes.node-taints]
            'karpenter.sh/unregistered' = [':NoExecute', 'x:NoSchedule']

            [settings.kubernetes.eviction-hard]
            'memory.available' = '5%'

            [settings.kubernetes.eviction-soft]
            'memory.available' = '10%'

            [settings.kubernetes.eviction-soft-grace-period]
            'memory.available' = '1m0s'

            [settings.kubernetes.kube-reserved]
            cpu = '200m'

            [settings.kubernetes.system-reserved]
            cpu = '100m'
            memory = '1Gi'

            [settings.kubernetes.memory-manager-reserved-memory]
            [settings.kubernetes.memory-manager-reserved-memory.0]
            enabled = true
            memory = '1Gi'

            [settings.network]
            hostname = "it's.local"
            hosts = [['10.0.0.0', ['a.example.com', 'b.example.com']]]
        "#]],
    );
    merged.custom = Some("not = = toml".to_owned());
    assert!(matches!(merged.text(), Err(UserDataError::Toml(_))));
    merged.custom = Some("settings = 3".to_owned());
    assert!(matches!(merged.text(), Err(UserDataError::Toml(_))));
}

/// AW24.12.9
#[test]
fn newer_bottlerocket_knows_what_to_bind() {
    let table = [
        (Some("1.45.0"), true),
        (Some("1.46.0"), false),
        (Some("v1.46.0"), false),
        (Some("2.0.0"), false),
        (Some("latest"), false),
        (Some("1.46"), true),
        (None, true),
    ];
    for (version, explicit) in table {
        let mut raid = bootstrap(AmiFamily::Bottlerocket);
        raid.instance_store_policy = Some(InstanceStorePolicy::Raid0);
        raid.image_version = version.map(str::to_owned);
        assert_eq!(raid.text().unwrap().contains("--dirs"), explicit, "{version:?}");
    }
}

/// AW24.12.10
#[test]
fn windows_calls_its_bootstrap_script_after_the_users_text() {
    let mut windows = bootstrap(AmiFamily::Windows2022);
    let call = r#"[string]$EKSBootstrapScriptFile = "$env:ProgramFiles\Amazon\EKS\Start-EKSBootstrap.ps1"
& $EKSBootstrapScriptFile -EKSClusterName 'demo' -APIServerEndpoint 'https://demo' -Base64ClusterCA 'Y2E=' -KubeletExtraArgs '--node-labels="karpenter.sh/capacity-type=spot,team=a" --register-with-taints="karpenter.sh/unregistered:NoExecute" --max-pods=35' -DNSClusterIP '10.100.0.10'
</powershell>"#;
    assert_eq!(windows.text().unwrap(), format!("<powershell>\n{call}"));
    windows.custom = Some("Write-Host 1".to_owned());
    assert_eq!(windows.text().unwrap(), format!("<powershell>\nWrite-Host 1\n{call}"));
}

/// AW24.12.11
#[test]
fn custom_images_get_the_users_text_untouched() {
    let mut custom = bootstrap(AmiFamily::Custom);
    assert_eq!(custom.text().unwrap(), "");
    custom.custom = Some("anything\r\nat all".to_owned());
    assert_eq!(custom.text().unwrap(), "anything\r\nat all");
    assert_eq!(custom.encoded().unwrap(), STANDARD.encode("anything\r\nat all"));
}

#[test]
fn nested_bottlerocket_settings_have_their_own_order() {
    let mut nested = bootstrap(AmiFamily::Bottlerocket);
    nested.custom = Some(
        r#"
        [settings.kubernetes.credential-providers.ecr-credential-provider]
        image-patterns = ["public.ecr.aws"]
        cache-duration = "30m"
        enabled = true

        [settings.kubernetes.topology-manager-policy-options]
        max-allowable-numa-nodes = 8
        prefer-closest-numa-nodes = true
        "#
        .to_owned(),
    );
    let text = nested.text().unwrap();
    let keys = [
        "enabled",
        "cache-duration",
        "image-patterns",
        "prefer-closest",
        "max-allowable",
    ];
    let places = keys.map(|key| text.find(key).unwrap());
    assert!(places.is_sorted(), "{text}");
}
