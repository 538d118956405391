//! Roles and instance profiles, with IAM's limits: a profile has one role, and is empty when it is deleted. Also which roles
//! the cluster lets in.

use std::collections::BTreeMap;

use http::StatusCode;
use jiff::Timestamp;

use super::{Plan, Tags, ids::Ids};
use crate::refusal::Refusal;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    pub name: String,
    pub path: String,
    pub id: String,
    pub arn: String,
    pub created: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    pub name: String,
    pub path: String,
    pub id: String,
    pub arn: String,
    pub created: Timestamp,
    pub role: Option<String>,
    pub tags: Tags,
}

/// How a principal gets into the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessEntry {
    pub kind: String,
    pub username: String,
    pub groups: Vec<String>,
}

#[derive(Clone, Debug, Default)]
pub struct Identity {
    account: String,
    pub roles: BTreeMap<String, Role>,
    pub profiles: BTreeMap<String, Profile>,
    /// By the ARN of the principal.
    pub access_entries: BTreeMap<String, AccessEntry>,
}

impl Identity {
    pub(super) fn of(plan: &Plan, ids: &mut Ids, now: Timestamp) -> Self {
        let mut identity = Self {
            account: plan.account.clone(),
            ..Self::default()
        };
        let nodes = format!("KarpenterNodeRole-{}", plan.cluster);
        identity.add_role(&nodes, ids.iam("AROA"), now);
        identity.let_in(&nodes);
        identity
    }

    pub(super) fn add_role(&mut self, name: &str, id: String, now: Timestamp) {
        let role = Role {
            name: name.to_owned(),
            path: "/".to_owned(),
            id,
            arn: format!("arn:aws:iam::{}:role/{name}", self.account),
            created: now,
        };
        self.roles.insert(name.to_owned(), role);
    }

    /// Lets instances with a role join the cluster.
    fn let_in(&mut self, role: &str) {
        let entry = AccessEntry {
            kind: "EC2_LINUX".to_owned(),
            username: "system:node:{{EC2PrivateDNSName}}".to_owned(),
            groups: vec!["system:nodes".to_owned()],
        };
        let principal = format!("arn:aws:iam::{}:role/{role}", self.account);
        self.access_entries.insert(principal, entry);
    }

    pub fn role(&self, name: &str) -> Result<&Role, Refusal> {
        let missing = || Refusal::no_such_entity(format!("The role with name {name} cannot be found."));
        self.roles.get(name).ok_or_else(missing)
    }

    pub fn profile(&self, name: &str) -> Result<&Profile, Refusal> {
        self.profiles.get(name).ok_or_else(|| no_profile(name))
    }

    pub fn create(
        &mut self,
        name: &str,
        path: Option<&str>,
        tags: Tags,
        id: String,
        now: Timestamp,
    ) -> Result<&Profile, Refusal> {
        if self.profiles.contains_key(name) {
            let message = format!("Instance Profile {name} already exists.");
            return Err(conflict("EntityAlreadyExists", message));
        }
        let path = path.unwrap_or("/").to_owned();
        let profile = Profile {
            name: name.to_owned(),
            id,
            arn: format!("arn:aws:iam::{}:instance-profile{path}{name}", self.account),
            path,
            created: now,
            role: None,
            tags,
        };
        Ok(self.profiles.entry(name.to_owned()).or_insert(profile))
    }

    pub fn attach(&mut self, profile: &str, role: &str) -> Result<(), Refusal> {
        let known = self.profiles.get_mut(profile).ok_or_else(|| no_profile(profile))?;
        if !self.roles.contains_key(role) {
            return Err(Refusal::no_such_entity(format!(
                "The role with name {role} cannot be found."
            )));
        }
        if known.role.is_some() {
            let message = "Cannot exceed quota for InstanceSessionsPerInstanceProfile: 1";
            return Err(conflict("LimitExceeded", message.to_owned()));
        }
        known.role = Some(role.to_owned());
        Ok(())
    }

    pub fn detach(&mut self, profile: &str, role: &str) -> Result<(), Refusal> {
        let known = self.profiles.get_mut(profile).ok_or_else(|| no_profile(profile))?;
        if known.role.as_deref() != Some(role) {
            return Err(Refusal::no_such_entity(format!(
                "The role with name {role} cannot be found."
            )));
        }
        known.role = None;
        Ok(())
    }

    pub fn delete(&mut self, name: &str) -> Result<(), Refusal> {
        if self.profile(name)?.role.is_some() {
            let message = "Cannot delete entity, must remove roles from instance profile first.";
            return Err(conflict("DeleteConflict", message.to_owned()));
        }
        self.profiles.remove(name);
        Ok(())
    }

    pub fn under(&self, prefix: &str) -> Vec<&Profile> {
        let profiles = self.profiles.values();
        profiles.filter(|profile| profile.path.starts_with(prefix)).collect()
    }
}

fn no_profile(name: &str) -> Refusal {
    Refusal::no_such_entity(format!("Instance Profile {name} cannot be found."))
}

fn conflict(code: &str, message: String) -> Refusal {
    Refusal::new(code, message).with_status(StatusCode::CONFLICT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_made_filled_emptied_and_deleted_in_that_order() {
        let mut identity = Identity::of(
            &Plan::new("us-west-2", "demo"),
            &mut Ids::default(),
            Timestamp::UNIX_EPOCH,
        );
        let code = |outcome: Result<(), Refusal>| outcome.err().map(|refusal| refusal.code);
        let create = |identity: &mut Identity| {
            let made = identity.create(
                "demo_1",
                Some("/karpenter/"),
                Tags::new(),
                "id".to_owned(),
                Timestamp::UNIX_EPOCH,
            );
            code(made.map(|_| ()))
        };
        assert_eq!(create(&mut identity), None);
        assert_eq!(create(&mut identity).as_deref(), Some("EntityAlreadyExists"));
        assert_eq!(
            code(identity.attach("demo_1", "nobody")).as_deref(),
            Some("NoSuchEntity")
        );
        assert_eq!(
            code(identity.attach("demo_2", "KarpenterNodeRole-demo")).as_deref(),
            Some("NoSuchEntity")
        );
        assert_eq!(code(identity.attach("demo_1", "KarpenterNodeRole-demo")), None);
        assert_eq!(
            code(identity.attach("demo_1", "KarpenterNodeRole-demo")).as_deref(),
            Some("LimitExceeded")
        );
        assert_eq!(code(identity.delete("demo_1")).as_deref(), Some("DeleteConflict"));
        assert_eq!(
            code(identity.detach("demo_1", "nobody")).as_deref(),
            Some("NoSuchEntity")
        );
        assert_eq!(code(identity.detach("demo_1", "KarpenterNodeRole-demo")), None);
        assert_eq!(identity.under("/karpenter/").len(), 1);
        assert_eq!(identity.under("/other/").len(), 0);
        assert_eq!(code(identity.delete("demo_1")), None);
        assert_eq!(code(identity.delete("demo_1")).as_deref(), Some("NoSuchEntity"));
    }
}
