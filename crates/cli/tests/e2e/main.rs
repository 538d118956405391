//! The real binary against a real kube-apiserver, controller manager and scheduler, with kwok in the kubelets' place.

mod cluster;
mod controller;
mod rotation;
mod scale;
