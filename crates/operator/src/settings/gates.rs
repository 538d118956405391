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

/// What there is to know of one feature, beside its default.
pub struct Gate {
    pub name: &'static str,
    /// What it opens.
    pub meaning: &'static str,
    field: fn(&mut FeatureGates) -> &mut bool,
}

/// Every gate, in the order of the reference.
pub const GATES: [Gate; 8] = [
    Gate {
        name: "ReservedCapacity",
        meaning: "capacity reservations, capacity type `reserved`",
        field: |gates| &mut gates.reserved_capacity,
    },
    Gate {
        name: "SpotToSpotConsolidation",
        meaning: "spot nodes are replaced by cheaper spot nodes",
        field: |gates| &mut gates.spot_to_spot_consolidation,
    },
    Gate {
        name: "NodeRepair",
        meaning: "nodes that stay ill are replaced",
        field: |gates| &mut gates.node_repair,
    },
    Gate {
        name: "NodeOverlay",
        meaning: "NodeOverlays correct prices and capacity",
        field: |gates| &mut gates.node_overlay,
    },
    Gate {
        name: "StaticCapacity",
        meaning: "`spec.replicas` of a NodePool",
        field: |gates| &mut gates.static_capacity,
    },
    Gate {
        name: "CapacityBuffer",
        meaning: "CapacityBuffers keep room",
        field: |gates| &mut gates.capacity_buffer,
    },
    Gate {
        name: "NodePreRegistration",
        meaning: "node objects are made at launch, as before 0.28",
        field: |gates| &mut gates.node_pre_registration,
    },
    Gate {
        name: "ProactiveBinding",
        meaning: "with the former: pods are bound to such nodes at once, as before 0.11",
        field: |gates| &mut gates.proactive_binding,
    },
];

impl Gate {
    /// Whether it is open where nobody says otherwise.
    pub fn is_default(&self) -> bool {
        *(self.field)(&mut FeatureGates::default())
    }
}

/// What the flag is for.
pub(super) fn help() -> String {
    let open = GATES.iter().filter(|gate| gate.is_default());
    let open: Vec<String> = open.map(|gate| format!("{}=true", gate.name)).collect();
    format!(
        "Optional features, as Name=true,Name=false; unknown names are passed over. [default: {}, the others false]",
        open.join(",")
    )
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
            if let Some(gate) = GATES.iter().find(|gate| gate.name == name.trim()) {
                *(gate.field)(&mut gates) = on;
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
    fn every_gate_can_be_opened_by_its_name() {
        let all: Vec<String> = GATES.iter().map(|gate| format!("{}=true", gate.name)).collect();
        let gates: FeatureGates = all.join(",").parse().unwrap();
        assert_eq!(
            gates,
            FeatureGates {
                node_repair: true,
                reserved_capacity: true,
                spot_to_spot_consolidation: true,
                node_overlay: true,
                static_capacity: true,
                capacity_buffer: true,
                node_pre_registration: true,
                proactive_binding: true,
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
