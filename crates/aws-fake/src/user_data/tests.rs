use super::*;

const AL2: &str = r#"MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="//"

--//
Content-Type: text/x-shellscript; charset="us-ascii"

#!/bin/bash
echo first
--//
Content-Type: text/x-shellscript; charset="us-ascii"

#!/bin/bash -xe
exec > >(tee /var/log/user-data.log|logger -t user-data -s 2>/dev/console) 2>&1
/etc/eks/bootstrap.sh 'demo' --apiserver-endpoint 'https://api' --b64-cluster-ca 'Y2E=' \
--dns-cluster-ip '10.100.0.10' \
--use-max-pods false \
--kubelet-extra-args '--node-labels="karpenter.sh/nodepool=default,team=web" --register-with-taints="karpenter.sh/unregistered:NoExecute,gpu=a:NoSchedule" --max-pods=29 --kube-reserved="cpu=70m,memory=1Gi"'
--//--
"#;

const AL2023: &str = r#"MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="//"

--//
Content-Type: application/node.eks.aws

apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster: {name: other}
  kubelet: {config: {maxPods: 5}}

--//
Content-Type: application/node.eks.aws

apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
metadata: {}
spec:
  cluster:
    apiServerEndpoint: https://api
    certificateAuthority: Y2E=
    cidr: 10.100.0.0/16
    name: demo
  containerd: {}
  kubelet:
    config:
      maxPods: 29
      kubeReserved: {cpu: 70m, memory: 1Gi}
      registerWithTaints:
      - effect: NoExecute
        key: karpenter.sh/unregistered
      - effect: NoSchedule
        key: gpu
        value: a
    flags:
    - --node-labels="karpenter.sh/nodepool=default,team=web"
--//--
"#;

const BOTTLEROCKET: &str = r#"
[settings.kubernetes]
api-server = 'https://api'
cluster-certificate = 'Y2E='
cluster-name = 'demo'
max-pods = 29

[settings.kubernetes.node-labels]
'karpenter.sh/nodepool' = 'default'
team = 'web'

[settings.kubernetes.node-taints]
'karpenter.sh/unregistered' = [':NoExecute']
gpu = ['a:NoSchedule']

[settings.kubernetes.kube-reserved]
cpu = '70m'
memory = '1Gi'
"#;

const WINDOWS: &str = r#"<powershell>
Write-Host hello
[string]$EKSBootstrapScriptFile = "$env:ProgramFiles\Amazon\EKS\Start-EKSBootstrap.ps1"
& $EKSBootstrapScriptFile -EKSClusterName 'demo' -APIServerEndpoint 'https://api' -Base64ClusterCA 'Y2E=' -KubeletExtraArgs '--node-labels="karpenter.sh/nodepool=default,team=web" --register-with-taints="karpenter.sh/unregistered:NoExecute,gpu=a:NoSchedule" --max-pods=29 --kube-reserved="cpu=70m,memory=1Gi"' -DNSClusterIP '10.100.0.10'
</powershell>"#;

fn expected() -> Bootstrap {
    let map = |pairs: &[(&str, &str)]| {
        let owned = pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        owned.collect::<BTreeMap<_, _>>()
    };
    let taint = |key: &str, value: &str, effect: &str| Taint {
        key: key.to_owned(),
        value: value.to_owned(),
        effect: effect.to_owned(),
    };
    Bootstrap {
        cluster: "demo".to_owned(),
        endpoint: "https://api".to_owned(),
        labels: map(&[("karpenter.sh/nodepool", "default"), ("team", "web")]),
        taints: vec![
            taint("karpenter.sh/unregistered", "", "NoExecute"),
            taint("gpu", "a", "NoSchedule"),
        ],
        max_pods: Some(29),
        kube_reserved: map(&[("cpu", "70m"), ("memory", "1Gi")]),
        system_reserved: BTreeMap::new(),
    }
}

#[test]
fn every_family_reads_its_own_format_and_custom_images_any() {
    for (family, text) in [
        (Family::Al2, AL2),
        (Family::Al2023, AL2023),
        (Family::Bottlerocket, BOTTLEROCKET),
        (Family::Windows, WINDOWS),
        (Family::Custom, AL2),
        (Family::Custom, AL2023),
        (Family::Custom, BOTTLEROCKET),
        (Family::Custom, WINDOWS),
    ] {
        let mut found = read(family, text).unwrap_or_else(|error| panic!("{family:?}: {error}"));
        found.taints.sort_by(|one, other| other.cmp(one));
        assert_eq!(found, expected(), "{family:?}");
    }
}

#[test]
fn bad_user_data_says_what_is_wrong() {
    let without = |text: &str, part: &str| text.replace(part, "");
    let table = [
        (
            Family::Al2,
            AL2023.to_owned(),
            "no part of the user data calls bootstrap.sh",
        ),
        (
            Family::Al2,
            without(AL2, "'demo' "),
            "the user data does not name the cluster",
        ),
        (
            Family::Al2,
            AL2.replace("a:NoSchedule", "a:Never"),
            "gpu=a:Never is no taint",
        ),
        (
            Family::Al2,
            "MIME-Version: 1.0\nX: y\n\nbody".to_owned(),
            "the MIME archive cannot be read: it has no Content-Type",
        ),
        (
            Family::Al2023,
            AL2.to_owned(),
            "no part of the user data is a NodeConfig",
        ),
        (
            Family::Al2023,
            without(AL2023, "    cidr: 10.100.0.0/16\n"),
            "the user data does not name the service CIDR",
        ),
        (
            Family::Bottlerocket,
            without(BOTTLEROCKET, "cluster-name = 'demo'\n"),
            "the user data does not name the cluster",
        ),
        (
            Family::Windows,
            AL2.to_owned(),
            "the user data is no PowerShell script that starts EKSBootstrap",
        ),
        (
            Family::Custom,
            "#!/bin/bash\necho hello\n".to_owned(),
            "no part of the user data calls bootstrap.sh",
        ),
    ];
    for (family, text, expected) in table {
        let error = read(family, &text).expect_err(expected);
        assert_eq!(error.to_string(), expected, "{family:?}");
    }
    let broken = read(Family::Bottlerocket, "[settings").expect_err("no TOML");
    assert!(matches!(broken, UserDataError::Settings(_)), "{broken}");
}

#[test]
fn images_tell_their_family() {
    let table = [
        ("amazon-eks-node-al2023-x86_64-standard-1.35-v20251101", Family::Al2023),
        ("amazon-eks-arm64-node-1.32-v20251101", Family::Al2),
        (
            "bottlerocket-aws-k8s-1.35-x86_64-v1.50.0-0f1e2d3c",
            Family::Bottlerocket,
        ),
        (
            "Windows_Server-2022-English-Core-EKS_Optimized-1.35-20251101",
            Family::Windows,
        ),
        ("my-own", Family::Custom),
    ];
    for (name, family) in table {
        assert_eq!(Family::of_image(name), family, "{name}");
    }
}
