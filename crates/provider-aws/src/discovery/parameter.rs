//! SSM parameters that name images.

use std::sync::Arc;

use clock::Clock;
use jiff::SignedDuration;

use crate::{cache::Cache, error::AwsError, ports::Ssm};

/// How long the image behind an alias counts as current; the check for deprecated images shortens it where it matters.
const ALIAS_TTL: SignedDuration = SignedDuration::from_hours(24);
/// Parameters of the user's own may change at any time.
const CUSTOM_TTL: SignedDuration = SignedDuration::from_mins(5);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    image: String,
    mutable: bool,
}

/// Parameters by name, remembered.
pub struct Parameters {
    ssm: Arc<dyn Ssm>,
    known: Cache<String, Known>,
}

impl Parameters {
    pub fn new(ssm: Arc<dyn Ssm>, clock: Arc<dyn Clock>) -> Self {
        Self {
            ssm,
            known: Cache::new(clock, ALIAS_TTL),
        }
    }

    /// The image that a parameter of an alias names.
    pub async fn of_alias(&self, name: &str, mutable: bool) -> Result<String, AwsError> {
        let fetch = async {
            let image = self.ssm.parameter(name).await?;
            Ok::<_, AwsError>(Known { image, mutable })
        };
        Ok(self.known.get_or_fetch(name.to_owned(), fetch).await?.image)
    }

    /// The value of a parameter that the user named.
    pub async fn of_user(&self, name: &str) -> Result<String, AwsError> {
        if let Some(known) = self.known.get(&name.to_owned()) {
            return Ok(known.image);
        }
        let image = self.ssm.parameter(name).await?;
        let known = Known {
            image: image.clone(),
            mutable: false,
        };
        self.known.put_for(name.to_owned(), known, CUSTOM_TTL);
        Ok(image)
    }

    /// Parameters whose image may have been replaced, with that image.
    pub fn mutable(&self) -> Vec<(String, String)> {
        let live = self.known.live().into_iter().filter(|(_, known)| known.mutable);
        live.map(|(name, known)| (name, known.image)).collect()
    }

    /// Forgets a parameter, so that the next question reaches SSM.
    pub fn forget(&self, name: &str) {
        self.known.remove(&name.to_owned());
    }
}
