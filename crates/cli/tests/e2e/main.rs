//! The real binary against a real kube-apiserver, controller manager and scheduler, with kwok in the kubelets' place, or
//! with instances of an AWS region on this machine.

#[cfg(feature = "aws")]
mod aws;
mod cluster;
mod controller;
mod legacy;
mod rotation;
mod scale;
mod webhooks;
