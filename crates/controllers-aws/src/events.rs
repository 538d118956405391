//! The events that only clusters on EC2 have: what they add to [`controllers::events`].

use controllers::events::EventFact;

/// Every reason, in the order of the alphabet.
pub const EVENTS: &[EventFact] = &[
    EventFact {
        reason: "ResolutionFailed",
        severity: "Warning",
        objects: "EC2NodeClass",
        meaning: "images, subnets, security groups, reservations or the instance profile could not be looked up or made",
        window: "2 min",
    },
    EventFact {
        reason: "WaitingOnNodeClaimTermination",
        severity: "Normal",
        objects: "EC2NodeClass",
        meaning: "the class is to go, and claims still use it",
        window: "2 min",
    },
    EventFact {
        reason: "ZonalShiftActive",
        severity: "Warning",
        objects: "NodePool",
        meaning: "the cluster is shifted out of a zone, and nothing is launched there",
        window: "2 min",
    },
    EventFact {
        reason: "ZonalShiftCleared",
        severity: "Normal",
        objects: "NodePool",
        meaning: "the cluster is back in the zone",
        window: "2 min",
    },
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::EVENTS;

    /// Reasons that stand in the code of a folder where a notice is made.
    fn reasons(folder: &Path) -> Vec<String> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(folder).expect("the sources are there") {
            let path = entry.expect("an entry can be read").path();
            if path.is_dir() {
                found.extend(reasons(&path));
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("a source can be read");
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            for call in ["Notice::normal(", "Notice::warning("] {
                let named = code.split(call).skip(1).filter_map(|rest| rest.strip_prefix('"'));
                found.extend(named.filter_map(|rest| Some(rest.split('"').next()?.to_owned())));
            }
        }
        found
    }

    #[test]
    fn every_reason_in_the_sources_is_listed() {
        let package = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo says whose tests these are");
        let named = reasons(&Path::new(&package).join("src"));
        assert!(!named.is_empty());
        let listed = |reason: &String| {
            let mut all = EVENTS.iter().chain(controllers::events::EVENTS);
            all.any(|event| event.reason == reason)
        };
        let missing: Vec<&String> = named.iter().filter(|reason| !listed(reason)).collect();
        assert!(missing.is_empty(), "not in the list: {missing:?}");
        assert!(EVENTS.is_sorted_by(|one, other| one.reason <= other.reason));
    }
}
