//! Optional features, by upstream's names.

use std::str::FromStr;

/// Which optional features are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureGates {
    pub node_repair: bool,
    pub reserved_capacity: bool,
    pub spot_to_spot_consolidation: bool,
    pub node_overlay: bool,
    pub static_capacity: bool,
    pub capacity_buffer: bool,
    /// Of early releases, not upstream's any more: node objects are made when their instances are launched.
    pub node_pre_registration: bool,
    /// Needs the former: pods are bound to such nodes at once.
    pub proactive_binding: bool,
}

impl Default for FeatureGates {
    fn default() -> Self {
        Self {
            node_repair: false,
            reserved_capacity: true,
            spot_to_spot_consolidation: false,
            node_overlay: false,
            static_capacity: false,
            capacity_buffer: false,
            node_pre_registration: false,
            proactive_binding: false,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not of the form Name=true or Name=false")]
pub struct MalformedGates(String);

impl FromStr for FeatureGates {
    type Err = MalformedGates;

    /// A name that is not known is passed over, so that lists written for other releases keep working.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut gates = Self::default();
        for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let malformed = || MalformedGates(pair.to_owned());
            let (name, value) = pair.split_once('=').ok_or_else(malformed)?;
            let on = match value.trim() {
                "true" | "True" | "TRUE" | "t" | "T" | "1" => true,
                "false" | "False" | "FALSE" | "f" | "F" | "0" => false,
                _ => return Err(malformed()),
            };
            match name.trim() {
                "NodeRepair" => gates.node_repair = on,
                "ReservedCapacity" => gates.reserved_capacity = on,
                "SpotToSpotConsolidation" => gates.spot_to_spot_consolidation = on,
                "NodeOverlay" => gates.node_overlay = on,
                "StaticCapacity" => gates.static_capacity = on,
                "CapacityBuffer" => gates.capacity_buffer = on,
                "NodePreRegistration" => gates.node_pre_registration = on,
                "ProactiveBinding" => gates.proactive_binding = on,
                _ => {}
            }
        }
        Ok(gates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unnamed_gates_keep_their_default_and_unknown_names_are_passed_over() {
        let gates: FeatureGates = "NodeRepair=true, Drift=true,".parse().unwrap();
        assert_eq!(
            gates,
            FeatureGates {
                node_repair: true,
                ..FeatureGates::default()
            }
        );
    }

    #[test]
    fn a_malformed_pair_is_an_error() {
        for bad in ["NodeRepair", "NodeRepair=yes", "NodeRepair=true;NodeOverlay=true"] {
            bad.parse::<FeatureGates>().expect_err(bad);
        }
    }
}
