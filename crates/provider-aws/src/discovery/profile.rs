//! Instance profiles: how instances come by their role.
//!
//! A profile is never changed under running instances. A class whose role changes gets a new profile; the old one is
//! collected when no claim uses it any more.

use std::sync::Arc;

use api::{aws::EC2NodeClass, hash::fnv1};
use clock::Clock;
use jiff::SignedDuration;

use crate::{
    cache::Cache,
    error::AwsError,
    ports::{Iam, ProfileInfo, Tags},
};

const KNOWN_FOR: SignedDuration = SignedDuration::from_mins(15);
const ROLE_MISSING_FOR: SignedDuration = SignedDuration::from_mins(1);
const RECREATED_FOR: SignedDuration = SignedDuration::from_mins(1);
const PROTECTED_FOR: SignedDuration = SignedDuration::from_hours(1);

#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// IAM said so a moment ago, and will not have changed its mind.
    #[error("the role {0} does not exist")]
    RoleMissing(String),
    #[error("the instance profile {name} could not be {verb}")]
    Iam {
        name: String,
        verb: &'static str,
        #[source]
        cause: AwsError,
    },
}

fn failed<'a>(name: &'a str, verb: &'static str) -> impl FnOnce(AwsError) -> ProfileError + 'a {
    move |cause| ProfileError::Iam {
        name: name.to_owned(),
        verb,
        cause,
    }
}

/// The path under which the profiles of a cluster, or of one class in it, are kept.
pub fn path(region: &str, cluster: &str, class_uid: Option<&str>) -> String {
    let class = class_uid.map(|uid| format!("{uid}/")).unwrap_or_default();
    format!("/karpenter/{region}/{cluster}/{class}")
}

/// The name that older releases gave the profile of a class, where IAM can have such a name.
pub fn legacy_name(region: &str, cluster: &str, class: &str) -> Option<String> {
    let name = format!("{cluster}_{}", fnv1(format!("{region}{class}").as_bytes()));
    let is_valid = |letter: char| letter.is_ascii_alphanumeric() || "_+=,.@-".contains(letter);
    (name.len() <= 128 && name.chars().all(is_valid)).then_some(name)
}

/// What IAM knows a role by: paths are not part of its name.
fn role_name(role: &str) -> &str {
    role.rsplit('/').next().unwrap_or(role)
}

/// Makes and removes profiles.
pub struct Profiles {
    iam: Arc<dyn Iam>,
    clock: Arc<dyn Clock>,
    region: String,
    cluster: String,
    known: Cache<String, ProfileInfo>,
    missing_roles: Cache<String, ()>,
    /// Names that were given lately, for the case that the status that should hold them was lost.
    recreated: Cache<(String, String), String>,
    protected: Cache<String, ()>,
}

impl Profiles {
    pub fn new(iam: Arc<dyn Iam>, clock: Arc<dyn Clock>, region: &str, cluster: &str) -> Self {
        Self {
            iam,
            region: region.to_owned(),
            cluster: cluster.to_owned(),
            known: Cache::new(clock.clone(), KNOWN_FOR),
            missing_roles: Cache::new(clock.clone(), ROLE_MISSING_FOR),
            recreated: Cache::new(clock.clone(), RECREATED_FOR),
            protected: Cache::new(clock.clone(), PROTECTED_FOR),
            clock,
        }
    }

    /// Profiles that must not be collected though no object names them yet, or any more.
    pub fn is_protected(&self, name: &str) -> bool {
        self.protected.get(&name.to_owned()).is_some()
    }

    /// The profile that instances of the class are to have, made if need be. `current` is what the status names.
    pub async fn ensure(
        &self,
        class: &EC2NodeClass,
        current: Option<&str>,
        tags: &Tags,
    ) -> Result<String, ProfileError> {
        if let Some(named) = &class.spec.instance_profile {
            if let Some(current) = current {
                self.protected.put(current.to_owned(), ());
            }
            return Ok(named.clone());
        }
        let role = class.spec.role.as_deref().unwrap_or_default();
        let uid = class.metadata.uid.clone().unwrap_or_default();
        let lost = self.recreated.get(&(role.to_owned(), uid.clone()));
        let current = lost.as_deref().or(current);
        if let Some(name) = current {
            let profile = self.get(name).await.map_err(failed(name, "read"))?;
            let has_role = |profile: &ProfileInfo| profile.roles.first().is_some_and(|held| held == role_name(role));
            if profile.as_ref().is_some_and(has_role) {
                return Ok(name.to_owned());
            }
        }
        let name = self.new_name(class, &uid, role);
        self.create_or_clean_up(&name, role, &uid, tags).await?;
        self.recreated.put((role.to_owned(), uid), name.clone());
        self.protected.put(name.clone(), ());
        if let Some(old) = current {
            self.protected.put(old.to_owned(), ());
        }
        Ok(name)
    }

    /// No other profile of this cluster has had this name: class, role and the moment go into it.
    fn new_name(&self, class: &EC2NodeClass, uid: &str, role: &str) -> String {
        let class_name = class.metadata.name.as_deref().unwrap_or_default();
        let moment = self.clock.now().as_nanosecond();
        let seed = format!("{}/{class_name}/{uid}/{role}/{moment}", self.region);
        format!("{}_{}", self.cluster, fnv1(seed.as_bytes()))
    }

    async fn create_or_clean_up(&self, name: &str, role: &str, uid: &str, tags: &Tags) -> Result<(), ProfileError> {
        let path = path(&self.region, &self.cluster, Some(uid));
        let created = self.create(name, role, &path, tags).await;
        if matches!(created, Err(ProfileError::Iam { .. })) {
            // Half a profile is of no use. Should this fail too, the collector finds it.
            let _ = self.delete(name).await;
        }
        created
    }

    async fn create(&self, name: &str, role: &str, path: &str, tags: &Tags) -> Result<(), ProfileError> {
        if self.missing_roles.get(&role.to_owned()).is_some() {
            return Err(ProfileError::RoleMissing(role.to_owned()));
        }
        let existing = self.get(name).await.map_err(failed(name, "read"))?;
        if existing.is_none() {
            let created = self.iam.create_profile(name, path, tags).await;
            created
                .or_else(|error| if error.is_already_there() { Ok(()) } else { Err(error) })
                .map_err(failed(name, "created"))?;
        }
        let added = self.iam.add_role(name, role_name(role)).await;
        if let Err(error) = &added
            && error.is_role_unknown()
        {
            self.missing_roles.put(role.to_owned(), ());
        }
        added.map_err(failed(name, "given its role"))?;
        let roles = vec![role_name(role).to_owned()];
        let profile = ProfileInfo {
            name: name.to_owned(),
            roles,
        };
        self.known.put(name.to_owned(), profile);
        Ok(())
    }

    async fn get(&self, name: &str) -> Result<Option<ProfileInfo>, AwsError> {
        if let Some(known) = self.known.get(&name.to_owned()) {
            return Ok(Some(known));
        }
        match self.iam.profile(name).await {
            Ok(profile) => {
                self.known.put(name.to_owned(), profile.clone());
                Ok(Some(profile))
            }
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Removes a profile and what hangs on it. One that is gone already is no error.
    pub async fn delete(&self, name: &str) -> Result<(), ProfileError> {
        let gone_is_fine = |result: Result<(), AwsError>| match result {
            Err(error) if error.is_not_found() => Ok(()),
            other => other,
        };
        match self.iam.profile(name).await {
            Ok(profile) => {
                for role in &profile.roles {
                    gone_is_fine(self.iam.remove_role(name, role).await).map_err(failed(name, "freed of its role"))?;
                }
                gone_is_fine(self.iam.delete_profile(name).await).map_err(failed(name, "deleted"))?;
            }
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(failed(name, "read")(error)),
        }
        self.known.remove(&name.to_owned());
        self.protected.remove(&name.to_owned());
        Ok(())
    }

    /// The profiles of the cluster, or of one class in it.
    pub async fn list(&self, class_uid: Option<&str>) -> Result<Vec<ProfileInfo>, AwsError> {
        let path = path(&self.region, &self.cluster, class_uid);
        self.iam.profiles(&path).await
    }
}

#[cfg(test)]
mod tests;
