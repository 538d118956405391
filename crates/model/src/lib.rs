//! Quantities, requirements, taints, instance types and the cluster snapshot: plain values.
