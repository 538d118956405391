//! The Kubernetes API in memory: a tower service under the ordinary kube client, and over HTTPS.
