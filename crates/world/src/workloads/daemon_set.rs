//! A daemon set has one pod on every node that its template admits.

use std::{collections::BTreeMap, sync::Arc};

use jiff::SignedDuration;
use k8s_openapi::api::{
    apps::v1::{DaemonSet, DaemonSetSpec, DaemonSetStatus},
    core::v1::{
        Affinity, Node, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, PodSpec, Toleration,
    },
};

use super::{
    pods::{controller_name, is_active, is_available, is_ready, owned_by, pod_of},
    rollout::resolve,
};
use crate::{
    binder::node_rules::{admits, tolerates},
    component::{Component, Ctx, Next},
    dice::Dice,
    kubelet::{collector::is_terminal, pods::node_of},
    mirror::{Key, Mirror, Seen},
};

const REVISION_LABEL: &str = "controller-revision-hash";

pub struct DaemonSets;

impl Component for DaemonSets {
    type Item = Key;
    const NAME: &'static str = "daemonset-controller";

    fn touched(mirror: &Mirror, seen: &Seen, items: &mut Vec<Key>) {
        match seen {
            Seen::DaemonSet(change) if change.new.is_some() => items.push(change.key.clone()),
            Seen::Pod(change) => {
                let owner = controller_name(&change.either().metadata, "DaemonSet");
                items.extend(owner.map(|name| Key::new(&*change.key.namespace, name)));
            }
            Seen::Node(_) => items.extend(mirror.daemon_sets.keys()),
            _ => {}
        }
    }

    async fn reconcile(&self, ctx: &Ctx, key: &Key) -> Result<Next, kube::Error> {
        let Some(set) = ctx.mirror.daemon_sets.get(key) else {
            return Ok(Next::OnChange);
        };
        if set.metadata.deletion_timestamp.is_some() {
            return Ok(Next::OnChange);
        }
        let spec = &set.spec;
        let revision = revision_of(spec);
        let template = daemon_spec(spec);
        let pods = pods_by_node(ctx, &set);
        for node in ctx.mirror.nodes.all() {
            let name = node.metadata.name.clone().unwrap_or_default();
            let here = pods.get(&name).map(Vec::as_slice).unwrap_or_default();
            let active: Vec<_> = here.iter().filter(|pod| is_active(pod)).collect();
            let placement = placement(&template, &node);
            // A pod on its way out has to be gone before the next one comes.
            if placement.may_start && here.iter().all(|pod| is_terminal(pod)) {
                ctx.create(&key.namespace, &pinned_pod(&set, spec, &template, &name, &revision))
                    .await?;
            }
            let surplus = if placement.may_stay { 1 } else { 0 };
            for pod in active.into_iter().skip(surplus) {
                ctx.delete(&**pod, None).await?;
            }
        }
        roll(ctx, spec, &revision, &pods).await?;
        publish(ctx, &set, spec, &template, &revision).await
    }
}

/// Whether a node gets the daemon's pod, and whether it keeps one that is there.
struct Placement {
    may_start: bool,
    may_stay: bool,
}

fn placement(template: &PodSpec, node: &Node) -> Placement {
    let fits = admits(template, node);
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    let repelled = |effects: &[&str]| {
        taints
            .clone()
            .any(|taint| effects.contains(&taint.effect.as_str()) && !tolerates(template, taint))
    };
    Placement {
        may_start: fits && !repelled(&["NoSchedule", "NoExecute"]),
        may_stay: fits && !repelled(&["NoExecute"]),
    }
}

/// The template with what every daemon tolerates: states of the node that its daemons are there to end.
fn daemon_spec(spec: &DaemonSetSpec) -> PodSpec {
    let mut pod = spec.template.spec.clone().unwrap_or_default();
    let tolerations = pod.tolerations.get_or_insert_default();
    let mut tolerate = |key: &str, effect: &str| {
        tolerations.push(Toleration {
            key: Some(format!("node.kubernetes.io/{key}")),
            operator: Some("Exists".into()),
            effect: Some(effect.into()),
            ..Toleration::default()
        });
    };
    tolerate("not-ready", "NoExecute");
    tolerate("unreachable", "NoExecute");
    for key in ["disk-pressure", "memory-pressure", "pid-pressure", "unschedulable"] {
        tolerate(key, "NoSchedule");
    }
    if pod.host_network == Some(true) {
        tolerate("network-unavailable", "NoSchedule");
    }
    pod
}

fn pinned_pod(set: &DaemonSet, spec: &DaemonSetSpec, template: &PodSpec, node: &str, revision: &str) -> Pod {
    let mut pod = pod_of(set, &spec.template);
    pod.metadata
        .labels
        .get_or_insert_default()
        .insert(REVISION_LABEL.into(), revision.into());
    let mut template = template.clone();
    pin(&mut template, node);
    pod.spec = Some(template);
    pod
}

/// Ties a pod to its node by the node's name, in every alternative of the affinity, and leaves the binding to the
/// scheduler.
fn pin(spec: &mut PodSpec, node: &str) {
    let here = NodeSelectorRequirement {
        key: "metadata.name".into(),
        operator: "In".into(),
        values: Some(vec![node.to_owned()]),
    };
    let affinity: &mut Affinity = spec.affinity.get_or_insert_default();
    let nodes: &mut NodeAffinity = affinity.node_affinity.get_or_insert_default();
    let required: &mut NodeSelector = nodes
        .required_during_scheduling_ignored_during_execution
        .get_or_insert_default();
    if required.node_selector_terms.is_empty() {
        required.node_selector_terms.push(NodeSelectorTerm::default());
    }
    for term in &mut required.node_selector_terms {
        term.match_fields = Some(vec![here.clone()]);
    }
}

/// The node that a daemon's pod is on or meant for.
fn target_of(pod: &Pod) -> Option<&str> {
    let pinned = || {
        let affinity = pod.spec.as_ref()?.affinity.as_ref()?.node_affinity.as_ref()?;
        let required = affinity.required_during_scheduling_ignored_during_execution.as_ref()?;
        let field = required.node_selector_terms.first()?.match_fields.as_ref()?.first()?;
        field.values.as_ref()?.first().map(String::as_str)
    };
    node_of(pod).or_else(pinned)
}

fn pods_by_node(ctx: &Ctx, set: &DaemonSet) -> BTreeMap<String, Vec<Arc<Pod>>> {
    let mut pods: BTreeMap<String, Vec<Arc<Pod>>> = BTreeMap::new();
    for pod in owned_by(ctx, &set.metadata) {
        let target = target_of(&pod).unwrap_or_default().to_owned();
        pods.entry(target).or_default().push(pod);
    }
    pods
}

fn revision_of(spec: &DaemonSetSpec) -> String {
    let text = serde_json::to_string(&spec.template).unwrap_or_default();
    format!("{:010x}", Dice::seeded(0).throw(&["template", &text]) >> 24)
}

fn is_current(pod: &Pod, revision: &str) -> bool {
    let labels = pod.metadata.labels.as_ref();
    labels
        .and_then(|labels| labels.get(REVISION_LABEL))
        .is_some_and(|value| value == revision)
}

/// Replaces pods of an older template, a few at a time.
async fn roll(
    ctx: &Ctx,
    spec: &DaemonSetSpec,
    revision: &str,
    pods: &BTreeMap<String, Vec<Arc<Pod>>>,
) -> Result<(), kube::Error> {
    let strategy = spec.update_strategy.as_ref();
    if strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("OnDelete") {
        return Ok(());
    }
    let total = i32::try_from(pods.len()).unwrap_or(i32::MAX);
    let limit = strategy.and_then(|strategy| strategy.rolling_update.as_ref()?.max_unavailable.as_ref());
    let limit = usize::try_from(resolve(limit, total, true).unwrap_or(1).max(1)).unwrap_or(1);
    let serving = |pod: &Pod| is_active(pod) && is_ready(pod);
    let missing = pods
        .values()
        .filter(|here| !here.iter().any(|pod| serving(pod)))
        .count();
    let stale = pods
        .values()
        .flatten()
        .filter(|pod| is_active(pod) && !is_current(pod, revision));
    let (ready, unready): (Vec<_>, Vec<_>) = stale.partition(|pod| is_ready(pod));
    let room = limit.saturating_sub(missing);
    // A pod that serves nobody can be replaced without counting.
    for pod in unready.into_iter().chain(ready.into_iter().take(room)) {
        ctx.delete(&**pod, None).await?;
    }
    Ok(())
}

async fn publish(
    ctx: &Ctx,
    set: &DaemonSet,
    spec: &DaemonSetSpec,
    template: &PodSpec,
    revision: &str,
) -> Result<Next, kube::Error> {
    let min_ready = SignedDuration::from_secs(spec.min_ready_seconds.unwrap_or_default().into());
    let now = ctx.now();
    let pods = pods_by_node(ctx, set);
    let mut status = DaemonSetStatus {
        observed_generation: set.metadata.generation,
        ..DaemonSetStatus::default()
    };
    let (mut updated, mut available) = (0, 0);
    for node in ctx.mirror.nodes.all() {
        let here = pods.get(node.metadata.name.as_deref().unwrap_or_default());
        let running = here.into_iter().flatten().find(|pod| is_active(pod));
        let wanted = placement(template, &node).may_start;
        status.desired_number_scheduled += i32::from(wanted);
        let Some(pod) = running else { continue };
        status.current_number_scheduled += i32::from(wanted);
        status.number_misscheduled += i32::from(!wanted);
        status.number_ready += i32::from(wanted && is_ready(pod));
        available += i32::from(wanted && is_available(pod, min_ready, now));
        updated += i32::from(wanted && is_current(pod, revision));
    }
    let unavailable = status.desired_number_scheduled - available;
    let some = |count: i32| (count > 0).then_some(count);
    status.updated_number_scheduled = some(updated);
    status.number_available = some(available);
    status.number_unavailable = some(unavailable);
    ctx.publish(set, set.status.as_ref(), &status).await?;
    Ok(Next::OnChange)
}
