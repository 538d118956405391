//! One index of the cluster, fed by watches, publishing snapshots.
