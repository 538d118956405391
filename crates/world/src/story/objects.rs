//! Pools and workloads, written shortly.

use model::CapacityType;
use serde_json::{Map, Value, json};

/// Something that can be put into a world: objects in the form in which users write them.
pub trait Created {
    fn objects(self) -> Vec<Value>;
}

/// An object as a user writes it.
impl Created for Value {
    fn objects(self) -> Vec<Value> {
        vec![self]
    }
}

/// A node pool on the simulated cloud's default node class.
#[derive(Clone, Debug)]
pub struct Pool {
    name: String,
    requirements: Vec<Value>,
    limits: Map<String, Value>,
    disruption: Value,
    template: Value,
    replicas: Option<u32>,
}

pub fn pool(name: &str) -> Pool {
    Pool {
        name: name.to_owned(),
        requirements: Vec::new(),
        limits: Map::new(),
        disruption: json!({ "consolidationPolicy": "WhenEmpty", "consolidateAfter": "30s" }),
        template: json!({}),
        replicas: None,
    }
}

impl Pool {
    /// A static pool of this size.
    pub fn replicas(mut self, count: u32) -> Self {
        self.replicas = Some(count);
        self
    }

    /// Sets a field of the template's spec.
    pub fn template(mut self, field: &str, value: Value) -> Self {
        self.template[field] = value;
        self
    }

    pub fn allow(self, kinds: impl IntoIterator<Item = CapacityType>) -> Self {
        let kinds = kinds.into_iter().map(CapacityType::as_str);
        self.require(api::labels::CAPACITY_TYPE, kinds)
    }

    pub fn zones(self, zones: impl IntoIterator<Item = &'static str>) -> Self {
        self.require(api::labels::ZONE, zones)
    }

    pub fn instance_types(self, types: impl IntoIterator<Item = &'static str>) -> Self {
        self.require(api::labels::INSTANCE_TYPE, types)
    }

    /// Nodes have one of these values of a label.
    pub fn require(mut self, key: &str, values: impl IntoIterator<Item = &'static str>) -> Self {
        let values: Vec<&str> = values.into_iter().collect();
        self.requirements
            .push(json!({ "key": key, "operator": "In", "values": values }));
        self
    }

    pub fn limit(mut self, resource: &str, amount: &str) -> Self {
        self.limits.insert(resource.to_owned(), amount.into());
        self
    }

    /// Empty nodes go after this time; `Never` keeps them.
    pub fn consolidate_after(mut self, time: &str) -> Self {
        self.disruption["consolidateAfter"] = time.into();
        self
    }

    /// `WhenEmpty` unless told otherwise.
    pub fn consolidation_policy(mut self, policy: &str) -> Self {
        self.disruption["consolidationPolicy"] = policy.into();
        self
    }

    /// How many nodes may be disrupted at a time, such as `10%` or `3`.
    pub fn budget(self, nodes: &str) -> Self {
        self.budgets(json!([{ "nodes": nodes }]))
    }

    /// Budgets as users write them.
    pub fn budgets(mut self, budgets: Value) -> Self {
        self.disruption["budgets"] = budgets;
        self
    }

    pub fn expire_after(mut self, time: &str) -> Self {
        self.template["expireAfter"] = time.into();
        self
    }

    pub fn termination_grace_period(mut self, time: &str) -> Self {
        self.template["terminationGracePeriod"] = time.into();
        self
    }
}

impl Created for Pool {
    fn objects(self) -> Vec<Value> {
        let mut spec = self.template;
        spec["requirements"] = self.requirements.into();
        spec["nodeClassRef"] = json!({ "group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default" });
        let mut pool = json!({
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": { "name": self.name },
            "spec": { "template": { "spec": spec }, "disruption": self.disruption, "limits": self.limits },
        });
        if let Some(replicas) = self.replicas {
            pool["spec"]["replicas"] = replicas.into();
        }
        vec![pool]
    }
}

pub const HOSTNAME: &str = "kubernetes.io/hostname";

/// The pods of a workload within one domain of this key.
pub fn beside(app: &str, key: &str) -> Value {
    json!({ "topologyKey": key, "labelSelector": { "matchLabels": { "app": app } } })
}

/// A workload with one container. Its pods carry the label `app` with the workload's name.
#[derive(Clone, Debug)]
pub struct Deployed {
    kind: &'static str,
    api_version: &'static str,
    name: String,
    replicas: u32,
    requests: Map<String, Value>,
    pod: Value,
    annotations: Map<String, Value>,
    budget: Option<Value>,
}

pub fn deployment(name: &str) -> Deployed {
    Deployed::new("Deployment", "apps/v1", name)
}

pub fn stateful_set(name: &str) -> Deployed {
    Deployed::new("StatefulSet", "apps/v1", name)
}

pub fn daemon_set(name: &str) -> Deployed {
    Deployed::new("DaemonSet", "apps/v1", name)
}

/// Its pods end well after some time; `replicas` is how many have to.
pub fn job(name: &str) -> Deployed {
    let mut job = Deployed::new("Job", "batch/v1", name);
    job.pod["restartPolicy"] = "Never".into();
    job
}

impl Deployed {
    fn new(kind: &'static str, api_version: &'static str, name: &str) -> Self {
        Self {
            kind,
            api_version,
            name: name.to_owned(),
            replicas: 1,
            requests: Map::new(),
            pod: json!({ "terminationGracePeriodSeconds": 10 }),
            annotations: Map::new(),
            budget: None,
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kind, if it is one that has replicas.
    pub fn scalable(&self) -> Option<&'static str> {
        matches!(self.kind, "Deployment" | "StatefulSet").then_some(self.kind)
    }

    pub fn replicas(mut self, count: u32) -> Self {
        self.replicas = count;
        self
    }

    /// What each pod asks for: `1 cpu, 2Gi`. An amount without a name is memory.
    pub fn asks(mut self, text: &str) -> Self {
        for part in text.split(',') {
            let mut words = part.split_whitespace();
            let amount = words.next().unwrap_or_default();
            let resource = words.next().unwrap_or("memory");
            self.requests.insert(resource.to_owned(), amount.into());
        }
        self
    }

    /// Sets a field of the pod's spec.
    pub fn pod(mut self, field: &str, value: Value) -> Self {
        self.pod[field] = value;
        self
    }

    /// Each of its pods on a node of its own.
    pub fn apart(self) -> Self {
        let term = beside(&self.name, HOSTNAME);
        let rule = json!({ "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [term] } });
        self.pod("affinity", rule)
    }

    /// Its pods like to be near those of a workload, or far from them: `podAffinity` or `podAntiAffinity`.
    pub fn prefers(self, kind: &str, app: &str, key: &str) -> Self {
        let term = json!({ "weight": 50, "podAffinityTerm": beside(app, key) });
        let rule = json!({ kind: { "preferredDuringSchedulingIgnoredDuringExecution": [term] } });
        self.pod("affinity", rule)
    }

    /// Its pods are spread evenly where that can be had.
    pub fn spread_anyway(self, key: &str) -> Self {
        let mut rule = beside(&self.name, key);
        rule["maxSkew"] = 1.into();
        rule["whenUnsatisfiable"] = "ScheduleAnyway".into();
        self.pod("topologySpreadConstraints", json!([rule]))
    }

    /// Annotates the pods.
    pub fn annotate(mut self, key: &str, value: &str) -> Self {
        self.annotations.insert(key.to_owned(), value.into());
        self
    }

    /// A disruption budget of this many missing pods.
    pub fn max_unavailable(mut self, count: u32) -> Self {
        self.budget = Some(json!({ "maxUnavailable": count }));
        self
    }
}

impl Created for Deployed {
    fn objects(self) -> Vec<Value> {
        let selector = json!({ "matchLabels": { "app": self.name } });
        let mut pod = self.pod;
        pod["containers"] = json!([{
            "name": "main", "image": "registry.k8s.io/pause:3.10", "resources": { "requests": self.requests },
        }]);
        let meta = json!({ "labels": { "app": self.name }, "annotations": self.annotations });
        let mut spec = json!({ "template": { "metadata": meta, "spec": pod } });
        match self.kind {
            "Job" => {
                spec["completions"] = self.replicas.into();
                spec["parallelism"] = self.replicas.into();
            }
            "DaemonSet" => spec["selector"] = selector.clone(),
            _ => {
                spec["replicas"] = self.replicas.into();
                spec["selector"] = selector.clone();
            }
        }
        if self.kind == "StatefulSet" {
            spec["serviceName"] = self.name.clone().into();
        }
        let meta = json!({ "name": self.name, "namespace": "default" });
        let workload = json!({ "apiVersion": self.api_version, "kind": self.kind, "metadata": meta, "spec": spec });
        let budget = self.budget.map(|mut budget| {
            budget["selector"] = selector;
            json!({ "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": budget })
        });
        budget.into_iter().chain([workload]).collect()
    }
}
