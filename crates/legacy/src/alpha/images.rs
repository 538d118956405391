//! Families and image selectors become terms; a family without a selector becomes an alias.

use api::aws::{AmiFamily, AmiSelectorTerm, Tags};

use super::selectors::{Selected, terms};
use crate::notes::{Change, Notes};

pub const FAMILIES: &[&str] = &["AL2", "Bottlerocket", "Ubuntu", "Windows2019", "Windows2022", "Custom"];

/// What a class says about its images.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Images {
    pub family: Option<AmiFamily>,
    pub terms: Vec<AmiSelectorTerm>,
    /// The default root volume of Ubuntu has to be written down.
    pub ubuntu: bool,
}

/// The alias of a family's latest images.
pub fn latest(family: &str) -> String {
    format!("{}@latest", family.to_lowercase())
}

pub fn images(family: Option<&str>, selector: Option<&Tags>, notes: &mut Notes) -> Images {
    let selector = selector.filter(|selector| !selector.is_empty());
    let family = family.filter(|family| !family.is_empty()).unwrap_or("AL2");
    let terms: Vec<AmiSelectorTerm> = selector.map_or_else(Vec::new, |selector| {
        let terms = terms(selector, Selected::Images, "spec.amiSelector", notes);
        if terms.iter().any(|term| !term.tags.is_empty()) {
            notes.warn("spec.amiSelector", Change::ImageTagsAreNoRequirements);
        }
        terms.into_iter().map(AmiSelectorTerm::from).collect()
    });
    match (family, terms.is_empty()) {
        ("Ubuntu", false) => {
            notes.warn("spec.amiFamily", Change::UbuntuBecomesAl2);
            Images {
                family: Some(AmiFamily::Al2),
                terms,
                ubuntu: true,
            }
        }
        ("Ubuntu" | "Custom", true) => {
            notes.invalid(
                "spec.amiSelector",
                format!("is missing; {family} has no images of its own"),
            );
            Images::default()
        }
        ("AL2" | "Bottlerocket" | "Windows2019" | "Windows2022", true) => {
            let alias = latest(family);
            notes.warn("spec.amiFamily", Change::ImagesRoll { alias: alias.clone() });
            if family == "AL2" {
                notes.warn("spec.amiFamily", Change::Al2Ends);
            }
            let alias = Some(alias);
            Images {
                terms: vec![AmiSelectorTerm {
                    alias,
                    ..AmiSelectorTerm::default()
                }],
                ..Images::default()
            }
        }
        ("AL2" | "Bottlerocket" | "Windows2019" | "Windows2022" | "Custom", false) => Images {
            family: Some(AmiFamily::from(family)),
            terms,
            ubuntu: false,
        },
        _ => {
            notes.invalid(
                "spec.amiFamily",
                format!("{family:?} is none of {}", FAMILIES.join(", ")),
            );
            Images::default()
        }
    }
}
