//! `aws:///us-west-2a/i-0123`: what Kubernetes calls an instance.

use model::ProviderId;

/// The provider id of an instance.
pub fn of(zone: &str, instance: &str) -> ProviderId {
    format!("aws:///{zone}/{instance}").into()
}

/// The instance that a provider id names, if it is one of EC2's.
pub fn instance_id(id: &ProviderId) -> Option<&str> {
    let rest = id.as_str().strip_prefix("aws:///")?;
    let (_, instance) = rest.rsplit_once('/')?;
    instance.starts_with("i-").then_some(instance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_written_and_read() {
        assert_eq!(of("us-west-2a", "i-1").as_str(), "aws:///us-west-2a/i-1");
        assert_eq!(instance_id(&"aws:///us-west-2a/i-1".into()), Some("i-1"));
        for other in [
            "kwok://x",
            "aws:///i-1",
            "other:///zone/i-1",
            "aws:///zone/fargate-1",
            "",
        ] {
            assert_eq!(instance_id(&other.into()), None, "{other}");
        }
    }
}
