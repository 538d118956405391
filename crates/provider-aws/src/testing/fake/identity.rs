use std::time::Duration;

use async_trait::async_trait;

use super::{FakeAws, FakeProfile};
use crate::{
    error::AwsError,
    ports::{
        AccessEntryInfo, ClusterInfo, Eks, Iam, Message, PriceList, PriceQuery, ProfileInfo, Shift, Sqs, Ssm, Tags,
        ZonalShift,
    },
};

/// How long a call waits for a message.
const WAIT: Duration = Duration::from_secs(20);

fn no_such(what: &str) -> AwsError {
    AwsError::new("NoSuchEntity", &format!("Instance Profile {what} cannot be found."))
}

fn info(name: &str, profile: &FakeProfile) -> ProfileInfo {
    ProfileInfo {
        name: name.to_owned(),
        roles: profile.role.iter().cloned().collect(),
    }
}

#[async_trait]
impl Iam for FakeAws {
    async fn profile(&self, name: &str) -> Result<ProfileInfo, AwsError> {
        let state = self.called("GetInstanceProfile")?;
        let profile = state.profiles.get(name).ok_or_else(|| no_such(name))?;
        Ok(info(name, profile))
    }

    async fn create_profile(&self, name: &str, path: &str, tags: &Tags) -> Result<(), AwsError> {
        let mut state = self.called("CreateInstanceProfile")?;
        let profile = FakeProfile {
            path: path.to_owned(),
            tags: tags.clone(),
            role: None,
        };
        match state.profiles.insert(name.to_owned(), profile) {
            Some(_) => Err(AwsError::new("EntityAlreadyExists", name)),
            None => Ok(()),
        }
    }

    async fn add_role(&self, profile: &str, role: &str) -> Result<(), AwsError> {
        let mut state = self.called("AddRoleToInstanceProfile")?;
        let profile = state.profiles.get_mut(profile).ok_or_else(|| no_such(profile))?;
        match profile.role.replace(role.to_owned()) {
            Some(_) => Err(AwsError::new("LimitExceeded", "a profile has one role")),
            None => Ok(()),
        }
    }

    async fn remove_role(&self, profile: &str, _: &str) -> Result<(), AwsError> {
        let mut state = self.called("RemoveRoleFromInstanceProfile")?;
        let profile = state.profiles.get_mut(profile).ok_or_else(|| no_such(profile))?;
        profile.role = None;
        Ok(())
    }

    async fn delete_profile(&self, name: &str) -> Result<(), AwsError> {
        let mut state = self.called("DeleteInstanceProfile")?;
        match state.profiles.get(name) {
            Some(profile) if profile.role.is_some() => Err(AwsError::new("DeleteConflict", "a role is attached")),
            Some(_) => {
                state.profiles.remove(name);
                Ok(())
            }
            None => Err(no_such(name)),
        }
    }

    async fn role(&self, _: &str) -> Result<(), AwsError> {
        self.called("GetRole").map(drop)
    }

    async fn profiles(&self, path_prefix: &str) -> Result<Vec<ProfileInfo>, AwsError> {
        let state = self.called("ListInstanceProfiles")?;
        let found = state
            .profiles
            .iter()
            .filter(|(_, profile)| profile.path.starts_with(path_prefix));
        Ok(found.map(|(name, profile)| info(name, profile)).collect())
    }
}

#[async_trait]
impl Ssm for FakeAws {
    async fn parameter(&self, name: &str) -> Result<String, AwsError> {
        let state = self.called("GetParameter")?;
        let value = state.parameters.get(name).cloned();
        value.ok_or_else(|| AwsError::new("ParameterNotFound", name))
    }
}

#[async_trait]
impl Eks for FakeAws {
    async fn cluster(&self, _: &str) -> Result<ClusterInfo, AwsError> {
        Ok(self.called("DescribeCluster")?.cluster.clone())
    }

    async fn access_entries(&self, _: &str) -> Result<Vec<String>, AwsError> {
        let state = self.called("ListAccessEntries")?;
        Ok(state.access_entries.keys().cloned().collect())
    }

    async fn access_entry(&self, _: &str, principal: &str) -> Result<AccessEntryInfo, AwsError> {
        let state = self.called("DescribeAccessEntry")?;
        let entry = state.access_entries.get(principal).cloned();
        entry.ok_or_else(|| AwsError::new("ResourceNotFoundException", principal))
    }
}

#[async_trait]
impl PriceList for FakeAws {
    async fn products(&self, _: &PriceQuery) -> Result<Vec<String>, AwsError> {
        let mut state = self.called("GetProducts")?;
        Ok(if state.products.is_empty() {
            Vec::new()
        } else {
            state.products.remove(0)
        })
    }
}

#[async_trait]
impl Sqs for FakeAws {
    async fn url(&self, queue: &str) -> Result<String, AwsError> {
        drop(self.called("GetQueueUrl")?);
        Ok(format!("https://sqs/{queue}"))
    }

    /// Waits a while for the first message, as SQS does.
    async fn receive(&self, _: &str) -> Result<Vec<Message>, AwsError> {
        drop(self.called("ReceiveMessage")?);
        if self.waiting_messages() == 0 {
            tokio::time::sleep(WAIT).await;
        }
        Ok(self.state().messages.clone())
    }

    async fn delete(&self, _: &str, receipt: &str) -> Result<(), AwsError> {
        self.called("DeleteMessage")?
            .messages
            .retain(|message| message.receipt != receipt);
        Ok(())
    }
}

#[async_trait]
impl ZonalShift for FakeAws {
    async fn shifts(&self, _: &str) -> Result<Vec<Shift>, AwsError> {
        Ok(self.called("GetManagedResource")?.shifts.clone())
    }
}
