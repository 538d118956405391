//! Removes instance profiles that neither a class nor a claim uses any more.

use std::{collections::BTreeSet, time::Duration};

use api::labels::annotations::INSTANCE_PROFILE_NAME;
use async_trait::async_trait;
use controllers::error::StepError;
use kube::ResourceExt;
use provider_aws::{class_view, housekeeping::unused_profiles};
use tracing::info;

use crate::{AwsCtx, chore::Chore, failed, objects::classes};

const EVERY: Duration = Duration::from_secs(30 * 60);

pub struct ProfileCollection;

#[async_trait]
impl Chore for ProfileCollection {
    const NAME: &'static str = "instanceprofile.garbagecollection";

    async fn run(&self, aws: &AwsCtx) -> Result<Duration, StepError> {
        let profiles = &aws.services.resolver.profiles;
        let listed = profiles.list(None).await;
        let listed = listed.map_err(|error| failed("list instance profiles", error))?;
        // Read after the list: a profile is younger than the class that it was made for.
        let view = aws.ctx.index.view();
        let of_claims: BTreeSet<String> = view
            .claims
            .values()
            .filter_map(|claim| claim.annotations().get(INSTANCE_PROFILE_NAME).cloned())
            .collect();
        let of_classes: BTreeSet<String> = classes(&view)
            .filter_map(|class| class_view::instance_profile(&class).map(str::to_owned))
            .collect();
        for name in unused_profiles(&listed, &of_claims, &of_classes, |name| profiles.is_protected(name)) {
            let removed = profiles.delete(name).await;
            removed.map_err(|error| failed("remove an instance profile", error))?;
            info!(profile = name, "removed an instance profile that nobody uses");
        }
        Ok(EVERY)
    }
}
