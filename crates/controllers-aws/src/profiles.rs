//! Removes instance profiles that neither a class nor a claim uses any more.
//!
//! A launch is under way with a profile before its claim says so, and what protects such profiles is forgotten with the
//! process. So a profile goes only when two looks in a row, half an hour apart, found that nobody uses it.

use std::{collections::BTreeSet, time::Duration};

use api::labels::annotations::INSTANCE_PROFILE_NAME;
use async_trait::async_trait;
use controllers::error::StepError;
use kube::ResourceExt;
use parking_lot::Mutex;
use provider_aws::{class_view, housekeeping::unused_profiles};
use tracing::info;

use crate::{AwsCtx, chore::Chore, failed, objects::classes};

const EVERY: Duration = Duration::from_secs(30 * 60);

#[derive(Default)]
pub struct ProfileCollection {
    /// What nobody used at the last look.
    unused: Mutex<BTreeSet<String>>,
}

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
        let unused = unused_profiles(&listed, &of_claims, &of_classes, |name| profiles.is_protected(name));
        let unused: BTreeSet<String> = unused.into_iter().map(str::to_owned).collect();
        let before = std::mem::replace(&mut *self.unused.lock(), unused.clone());
        for name in unused.intersection(&before) {
            let removed = profiles.delete(name).await;
            removed.map_err(|error| failed("remove an instance profile", error))?;
            info!(profile = name, "removed an instance profile that nobody uses");
        }
        Ok(EVERY)
    }
}
