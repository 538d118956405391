//! What all sources come to, each for itself: one that cannot be converted keeps no other from it.

use std::collections::{BTreeMap, BTreeSet};

use legacy::{Input, LaunchTemplates, Options, Output, Refusal};
use provider::NodeClassKind;
use serde_json::Value;

use crate::{Place, Source, clouds, source::Document};

/// What one source comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Objects of v1, as crate `legacy` writes them.
    Objects(Vec<Value>),
    /// Why there are none.
    Refused(String),
}

/// What all sources come to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Book {
    outcomes: BTreeMap<Source, Outcome>,
    /// Claims that machines come to, by the name of the machine.
    pub claims: BTreeMap<String, Value>,
}

impl Book {
    pub fn outcome(&self, source: &Source) -> Option<&Outcome> {
        self.outcomes.get(source)
    }

    fn refuse(&mut self, source: &Source, problem: String) {
        match self
            .outcomes
            .entry(source.clone())
            .or_insert_with(|| Outcome::Refused(String::new()))
        {
            Outcome::Refused(said) if said.is_empty() => *said = problem,
            Outcome::Refused(said) => said.push_str(&format!("; {problem}")),
            other @ Outcome::Objects(_) => *other = Outcome::Refused(problem),
        }
    }
}

/// What is converted, and for which cloud.
pub struct Question<'a> {
    pub documents: &'a [Document],
    pub settings: Option<&'a Value>,
    /// Machines to convert along with their Provisioners.
    pub machines: &'a [Value],
    pub place: &'a Place,
    pub class: &'a NodeClassKind,
}

/// How objects of a cluster are converted.
pub fn options(place: &Place, class: &NodeClassKind) -> Options {
    Options {
        cluster_name: clouds::cluster_name(class, place),
        launch_templates: LaunchTemplates::Keep,
        ..Options::default()
    }
}

/// Converts everything that can be converted.
///
/// A refusal takes its source out of the batch and the rest is converted again, so that what one source says about
/// another counts only where it counts in the end.
pub fn book(question: &Question<'_>) -> Book {
    let options = options(question.place, question.class);
    let mut book = Book::default();
    let mut left: Vec<&Document> = question.documents.iter().collect();
    let mut machines: Vec<&Value> = question.machines.iter().collect();
    while !left.is_empty() {
        let inputs = inputs(&left, &machines, question.settings);
        match legacy::convert(&inputs, &options) {
            Ok(conversion) => {
                enter(&mut book, &conversion.outputs, &left, question.class);
                return book;
            }
            Err(refusals) => {
                let places = places(&refusals);
                let before = left.len() + machines.len();
                for refusal in &refusals {
                    if let Some(document) = left
                        .iter()
                        .find(|document| refusal.subject.place == document.source.to_string())
                    {
                        book.refuse(&document.source, refusal.problem());
                    }
                }
                left.retain(|document| !places.contains(document.source.to_string().as_str()));
                machines.retain(|machine| !places.contains(machine_place(machine).as_str()));
                if left.len() + machines.len() == before {
                    for document in &left {
                        book.refuse(
                            &document.source,
                            refusals.iter().map(Refusal::problem).collect::<Vec<_>>().join("; "),
                        );
                    }
                    return book;
                }
            }
        }
    }
    book
}

fn inputs(left: &[&Document], machines: &[&Value], settings: Option<&Value>) -> Vec<Input> {
    let sources = left.iter().map(|document| Input {
        place: document.source.to_string(),
        object: document.object.clone(),
    });
    let machines = machines.iter().map(|machine| Input {
        place: machine_place(machine),
        object: (*machine).clone(),
    });
    let settings = settings.map(|object| Input {
        place: "settings".to_owned(),
        object: object.clone(),
    });
    sources.chain(machines).chain(settings).collect()
}

fn machine_place(machine: &Value) -> String {
    let name = machine.pointer("/metadata/name").and_then(Value::as_str);
    format!("Machine/{}", name.unwrap_or_default())
}

fn places(refusals: &[Refusal]) -> BTreeSet<&str> {
    refusals.iter().map(|refusal| refusal.subject.place.as_str()).collect()
}

fn enter(book: &mut Book, outputs: &[Output], left: &[&Document], class: &NodeClassKind) {
    for output in outputs {
        let Output::Made { input, object, .. } = output else {
            continue;
        };
        let object = clouds::adapted(object.clone(), class);
        let Some(document) = left.get(*input) else {
            if object["kind"] == "NodeClaim" {
                let name = object.pointer("/metadata/name").and_then(Value::as_str);
                book.claims.insert(name.unwrap_or_default().to_owned(), object);
            }
            continue;
        };
        if let Err(problem) = clouds::check(&object, class) {
            book.refuse(&document.source, problem.to_owned());
            continue;
        }
        let outcome = book.outcomes.entry(document.source.clone());
        if let Outcome::Objects(objects) = outcome.or_insert_with(|| Outcome::Objects(Vec::new())) {
            objects.push(object);
        }
    }
}

#[cfg(test)]
mod tests;
