//! The words of each provider, on top of what Karpenter itself knows.

use model::{LabelKey, LabelValue, ResourceName, Vocabulary};

use crate::labels;

/// The words of the AWS provider.
pub fn aws() -> Vocabulary {
    let mut words = Vocabulary::core();
    words.well_known.insert(labels::aws::ZONE_ID.into());
    for key in labels::aws::INSTANCE_FACTS.iter().chain(labels::aws::PLACEMENT) {
        words.well_known.insert(LabelKey::from(*key));
    }
    words.restricted_domains.insert(labels::AWS_DOMAIN.to_owned());
    words.known_values.insert(
        labels::aws::INSTANCE_TENANCY.into(),
        labels::aws::TENANCIES
            .iter()
            .map(|value| LabelValue::from(*value))
            .collect(),
    );
    for resource in [
        "vpc.amazonaws.com/pod-eni",
        "aws.amazon.com/neuron",
        "aws.amazon.com/neuroncore",
        "habana.ai/gaudi",
        "vpc.amazonaws.com/efa",
    ] {
        words.well_known_resources.insert(ResourceName::from(resource));
    }
    words.reservation_id = Some(labels::aws::CAPACITY_RESERVATION_ID.into());
    words
}

/// The words of the simulated provider.
pub fn kwok() -> Vocabulary {
    let mut words = Vocabulary::core();
    for key in labels::kwok::WELL_KNOWN {
        words.well_known.insert(LabelKey::from(*key));
    }
    words.restricted_domains.insert(labels::KWOK_DOMAIN.to_owned());
    words
}
