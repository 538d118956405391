//! `autoscaling.x-k8s.io/v1beta1`: capacity buffers, a kind shared with the cluster autoscaler.

mod capacity_buffer;

pub use capacity_buffer::{CapacityBuffer, CapacityBufferSpec, CapacityBufferStatus, LocalObjectRef, ScalableRef};
