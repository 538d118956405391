//! Selector maps become terms: a comma was an alternative within one value, a term is an alternative as a whole.

use api::aws::{AmiSelectorTerm, SecurityGroupSelectorTerm, SubnetSelectorTerm, Tags};

use crate::notes::{Change, Notes, Reason};

const MOST_TERMS: usize = 30;
const MOST_TAGS: usize = 20;

/// What a selector selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selected {
    Subnets,
    SecurityGroups,
    Images,
}

impl Selected {
    fn id_prefix(self) -> &'static str {
        match self {
            Selected::Subnets => "subnet-",
            Selected::SecurityGroups => "sg-",
            Selected::Images => "ami-",
        }
    }
}

/// One alternative.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Term {
    pub owner: Option<String>,
    pub id: Option<String>,
    pub name: Option<String>,
    pub tags: Tags,
}

/// The product of all alternatives, in the order in which upstream's converter writes them.
pub fn product(selector: &Tags, selected: Selected, field: &str, notes: &mut Notes) -> Vec<Term> {
    let mut owners = vec![None];
    let mut ids = vec![None];
    let mut names = vec![None];
    let mut tag_sets = vec![Tags::new()];
    for (key, value) in selector {
        if key.is_empty() {
            notes.invalid(field, "a key is empty");
            continue;
        }
        let mut values: Vec<String> = value.split(',').map(|part| part.trim().to_owned()).collect();
        if values.iter().any(String::is_empty) {
            notes.warn(field, Change::EmptyValueMatchesAny { key: key.clone() });
            values = values
                .into_iter()
                .map(|part| if part.is_empty() { "*".to_owned() } else { part })
                .collect();
        }
        let images = selected == Selected::Images;
        match key.as_str() {
            "aws-ids" | "aws::ids" => {
                for id in values.iter().filter(|id| !id.starts_with(selected.id_prefix())) {
                    let problem = format!("{id:?} does not begin with {:?}", selected.id_prefix());
                    notes.invalid(field, problem);
                }
                ids = values.into_iter().map(Some).collect();
            }
            "aws::name" if images => names = values.into_iter().map(Some).collect(),
            "aws::owners" if images => owners = values.into_iter().map(Some).collect(),
            _ => {
                let mut wider = Vec::new();
                for value in &values {
                    for tags in &tag_sets {
                        let mut tags = tags.clone();
                        tags.insert(key.clone(), value.clone());
                        wider.push(tags);
                    }
                }
                tag_sets = wider;
            }
        }
    }
    let mut terms = Vec::new();
    for owner in &owners {
        for id in &ids {
            for name in &names {
                for tags in &tag_sets {
                    terms.push(Term {
                        owner: owner.clone(),
                        id: id.clone(),
                        name: name.clone(),
                        tags: tags.clone(),
                    });
                }
            }
        }
    }
    terms
}

/// The product as v1 takes it: an id stands alone, as it always did when instances were launched.
pub fn terms(selector: &Tags, selected: Selected, field: &str, notes: &mut Notes) -> Vec<Term> {
    let mut terms = Vec::new();
    for mut term in product(selector, selected, field, notes) {
        if term.id.is_some() {
            term = Term {
                id: term.id,
                ..Term::default()
            };
        }
        if !terms.contains(&term) {
            terms.push(term);
        }
    }
    if terms.len() > MOST_TERMS {
        let count = terms.len();
        notes.refuse(
            field,
            Reason::TooMany {
                count,
                what: "terms",
                most: MOST_TERMS,
            },
        );
    }
    let tags = terms.iter().map(|term| term.tags.len()).max().unwrap_or(0);
    if tags > MOST_TAGS {
        notes.refuse(
            field,
            Reason::TooMany {
                count: tags,
                what: "tags in a term",
                most: MOST_TAGS,
            },
        );
    }
    terms
}

fn some(tags: Tags) -> Option<Tags> {
    (!tags.is_empty()).then_some(tags)
}

impl From<Term> for SubnetSelectorTerm {
    fn from(term: Term) -> Self {
        Self {
            tags: some(term.tags),
            id: term.id,
        }
    }
}

impl From<Term> for SecurityGroupSelectorTerm {
    fn from(term: Term) -> Self {
        Self {
            tags: some(term.tags),
            id: term.id,
            name: None,
        }
    }
}

impl From<Term> for AmiSelectorTerm {
    fn from(term: Term) -> Self {
        Self {
            tags: some(term.tags),
            id: term.id,
            name: term.name,
            owner: term.owner,
            ..Self::default()
        }
    }
}
