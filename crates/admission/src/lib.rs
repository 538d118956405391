//! What webhooks of the time of Provisioners answer: an AdmissionReview or ConversionReview in, its answer out.
//!
//! | Path | Question | Answer |
//! | --- | --- | --- |
//! | `/default/…` | what is to be added to the object? | a JSON patch |
//! | `/validate/…` | may it be written? | yes, or all that is wrong with it |
//! | `/conversion/…` | what is it in another version? | the objects in that version |
//!
//! What is added, refused and converted is decided in crate `legacy`, whoever asks. Nothing here listens or asks a cluster.
//!
//! ```
//! use admission::{Pools, Review, Rules};
//! use serde_json::json;
//!
//! let body = json!({
//!     "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
//!     "request": {"uid": "1", "operation": "CREATE", "object": {
//!         "apiVersion": "karpenter.sh/v1alpha5", "kind": "Provisioner", "metadata": {"name": "default"},
//!         "spec": {"providerRef": {"name": "default"}, "ttlSecondsAfterEmpty": -1},
//!     }},
//! });
//! let review = Review::read("/validate/karpenter.sh", body.to_string().as_bytes()).expect("a review");
//! let answer = review.answer(&Rules::default(), &Pools::new());
//! assert_eq!(answer["response"]["allowed"], false);
//! assert_eq!(answer["response"]["status"]["message"], "spec.ttlSecondsAfterEmpty: may not be negative");
//! ```

mod conversion;
mod object;
mod review;

pub use legacy::Pools;
pub use review::{Malformed, PATHS, Review};

/// What has to be known of the place in order to answer.
#[derive(Clone, Debug)]
pub struct Rules {
    /// How objects are converted there.
    pub options: legacy::Options,
    /// The words of the provider at hand: a requirement that it does not know is not added.
    pub words: model::Vocabulary,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            options: legacy::Options::default(),
            words: api::vocabulary::aws(),
        }
    }
}
