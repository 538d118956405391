//! Rules between a pod and a node that machines and pools share.

use model::{
    Requirements, Taint, Toleration,
    pod::{HostPort, PodShape},
    requirements::AllowUndefined,
    taint,
};

/// Whether a port that is wanted is taken already.
pub(crate) fn ports_clash(wanted: &[HostPort], taken: &[HostPort]) -> bool {
    wanted
        .iter()
        .any(|port| taken.iter().any(|other| port.conflicts_with(other)))
}

/// Whether a daemon will run on a node with these labels and taints. Preferences do not keep a daemon away.
pub(crate) fn daemon_runs_on(
    daemon: &PodShape,
    taints: &[Taint],
    labels: &Requirements,
    allow: AllowUndefined<'_>,
) -> bool {
    let mut tolerations = daemon.tolerations.clone();
    tolerations.push(Toleration::of_prefer_no_schedule());
    taint::untolerated(taints, &tolerations).is_none()
        && Requirements::alternatives_of_pod(daemon)
            .iter()
            .any(|way| labels.is_compatible(way, allow))
}
