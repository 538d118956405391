//! Objects to put together.

/// A pool of linux nodes on spot or on demand.
pub const POOL: &str = "
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements:
      - {key: kubernetes.io/os, operator: In, values: [linux]}
";

/// The node class of the pool.
pub const CLASS: &str = "
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: default}
";

/// A pod that nobody has placed.
pub fn pod(name: &str, cpu: &str) -> String {
    pod_with(name, cpu, "")
}

/// As [`pod`], with more lines of its spec.
pub fn pod_with(name: &str, cpu: &str, spec: &str) -> String {
    format!(
        "
apiVersion: v1
kind: Pod
metadata: {{name: {name}, labels: {{app: {app}}}}}
spec:
  containers:
  - {{name: main, image: app, resources: {{requests: {{cpu: {cpu}, memory: 1Gi}}}}}}
{spec}
",
        app = name.split('-').next().unwrap_or(name)
    )
}

/// A node that nobody here launched, with room for one small pod.
pub fn node(name: &str) -> String {
    format!(
        "
apiVersion: v1
kind: Node
metadata: {{name: {name}, labels: {{kubernetes.io/hostname: {name}}}}}
status:
  capacity: {{cpu: 2, memory: 4Gi, pods: 10}}
  allocatable: {{cpu: 2, memory: 4Gi, pods: 10}}
"
    )
}

/// Several objects in one file.
pub fn all(objects: &[&str]) -> String {
    objects.join("\n---\n")
}
