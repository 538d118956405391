//! What a class leaves behind when it goes: its instance profiles and its launch templates.

use api::aws::EC2NodeClass;

use crate::{
    discovery::{ProfileError, legacy_name},
    error::AwsError,
    services::Services,
    templates::TemplateFailed,
};

#[derive(Debug, thiserror::Error)]
pub enum CleanUpError {
    #[error("the instance profiles of the class could not be listed")]
    List(#[source] AwsError),
    #[error("an instance profile of the class could not be removed")]
    Profile(#[source] ProfileError),
    #[error("the launch templates of the class could not be removed")]
    Templates(#[source] TemplateFailed),
}

impl Services {
    /// Removes all that was made for the class. Nothing of it may be in use any more.
    pub async fn clean_up(&self, class: &EC2NodeClass) -> Result<(), CleanUpError> {
        let name = class.metadata.name.clone().unwrap_or_default();
        let uid = class.metadata.uid.clone().unwrap_or_default();
        // IAM cannot be reached from an isolated network; nobody made profiles from there.
        if !self.options.isolated_vpc {
            self.remove_profiles(&name, &uid).await?;
        }
        let removed = self.templates.delete_all_of(&name).await;
        removed.map_err(CleanUpError::Templates)?;
        self.metrics.class_gone(&name);
        self.catalog.forget(&uid);
        Ok(())
    }

    async fn remove_profiles(&self, name: &str, uid: &str) -> Result<(), CleanUpError> {
        let profiles = &self.resolver.profiles;
        let listed = profiles.list(Some(uid)).await.map_err(CleanUpError::List)?;
        let legacy = legacy_name(&self.region, &self.options.cluster_name, name);
        let names = listed.into_iter().map(|profile| profile.name).chain(legacy);
        for profile in names {
            profiles.delete(&profile).await.map_err(CleanUpError::Profile)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        discovery::profile_path,
        options::Options,
        testing::{
            fake::{FakeAws, FakeProfile},
            samples::{self, REGION},
        },
    };

    fn profile(path: &str, role: Option<&str>) -> FakeProfile {
        FakeProfile {
            path: path.to_owned(),
            role: role.map(str::to_owned),
            ..FakeProfile::default()
        }
    }

    /// AW24.8.2, AW24.8.4
    #[tokio::test(start_paused = true)]
    async fn a_class_takes_its_profiles_along_and_leaves_those_of_others() {
        let aws = FakeAws::new();
        let own = profile_path(REGION, "demo", Some("class-uid"));
        let other = profile_path(REGION, "demo", Some("other-uid"));
        aws.add_profile("demo_1", profile(&own, Some("node-role")));
        aws.add_profile("demo_2", profile(&own, None));
        aws.add_profile("demo_3", profile(&other, Some("node-role")));
        let legacy = legacy_name(REGION, "demo", "default").unwrap();
        aws.add_profile(&legacy, profile("/", Some("node-role")));
        let services = samples::services(&aws);
        services.clean_up(&samples::class()).await.unwrap();
        assert_eq!(aws.profile_names(), ["demo_3"]);
        services.clean_up(&samples::class()).await.unwrap();

        aws.fail("ListInstanceProfiles", AwsError::new("AccessDenied", "no"));
        let failed = services.clean_up(&samples::class()).await;
        assert!(matches!(failed, Err(CleanUpError::List(_))));
    }

    /// AW24.8.4
    #[tokio::test(start_paused = true)]
    async fn iam_is_left_alone_in_an_isolated_network_and_by_names_it_cannot_have() {
        let aws = FakeAws::new();
        let isolated = Options {
            isolated_vpc: true,
            ..samples::options()
        };
        let mut foundation = samples::foundation(&aws);
        foundation.options = Arc::new(isolated);
        Services::new(foundation).clean_up(&samples::class()).await.unwrap();
        let iam = ["ListInstanceProfiles", "GetInstanceProfile", "DeleteInstanceProfile"];
        assert!(iam.iter().all(|action| aws.calls(action) == 0));

        let mut foundation = samples::foundation(&aws);
        foundation.options = Arc::new(Options::for_cluster("a/b"));
        Services::new(foundation).clean_up(&samples::class()).await.unwrap();
        assert_eq!(
            aws.calls("GetInstanceProfile"),
            0,
            "there is no legacy profile to look for"
        );
    }
}
