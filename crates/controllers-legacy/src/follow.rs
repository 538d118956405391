//! A source gets its objects: observe, decide, act, for both kinds of source alike.

use std::{collections::BTreeSet, time::Duration};

use api::{labels::compatibility, v1::NodePool};
use controllers::{
    error::{StepError, chain},
    writer::{ApiError, ApiFailure},
};
use kube::{
    ResourceExt,
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use provider::NodeClassKind;
use serde_json::{Value, json};
use state::{NodeClass, ObjectKey, View};
use tracing::info;

use crate::{
    FIELD_MANAGER, LegacyCtx, Source,
    book::{Book, Outcome, Question, book},
    notices,
    source::{Document, documents, settings},
    target::{Fate, Wanted, fate, is_managed, other_owners, wanted},
};

/// Sources are looked at again after this time though nothing has changed.
pub const AGAIN: Duration = Duration::from_secs(10 * 60);

/// What a source is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Converted,
    /// Its user has taken the object of v1 over.
    Adopted {
        object: String,
    },
    NameConflict {
        object: String,
    },
    ValidationFailed {
        problem: String,
    },
}

/// All that there is to know about one source.
struct Case {
    document: Document,
    book: Book,
}

impl LegacyCtx {
    /// The kind of class that the cloud has.
    pub fn class_kind(&self) -> NodeClassKind {
        let kinds = self.ctx.cloud.node_classes();
        *kinds.first().expect("a provider serves at least one kind of class")
    }

    pub fn class<'a>(&self, view: &'a View, name: &str) -> Option<&'a NodeClass> {
        let kind = self.class_kind();
        view.classes
            .get(&ObjectKey::new(&format!("{}/{}", kind.group, kind.kind), name))
            .map(AsRef::as_ref)
    }

    /// What all sources come to, and the machines with them. Each source asks for it anew: a cluster has a handful, and what
    /// one comes to depends on the others.
    pub fn book(&self, view: &View, machines: &[Value]) -> Book {
        let (documents, settings) = (documents(view), settings(view));
        book(&Question {
            documents: &documents,
            settings: settings.as_ref(),
            machines,
            place: &self.place,
            class: &self.class_kind(),
        })
    }

    /// Nothing for a source that is gone, or will be: what it owns goes with it.
    fn case(&self, view: &View, source: &Source) -> Option<Case> {
        let document = documents(view)
            .into_iter()
            .find(|document| document.source == *source)?;
        let book = self.book(view, &[]);
        Some(Case { document, book })
    }
}

/// Brings the objects of one source up to date, complains where that is called for, and says how it went. Nothing for a
/// source that is gone.
pub async fn settle(legacy: &LegacyCtx, source: &Source) -> Result<Option<Verdict>, StepError> {
    let view = legacy.ctx.index.view();
    let Some(case) = legacy.case(&view, source) else {
        return Ok(None);
    };
    let verdict = follow(legacy, &view, &case).await?;
    if let Some(notice) = notices::complaint(&case.document, &verdict) {
        legacy.ctx.outbox.publish(notice);
    }
    Ok(Some(verdict))
}

async fn follow(legacy: &LegacyCtx, view: &View, case: &Case) -> Result<Verdict, StepError> {
    let Case { document, book } = case;
    let source = &document.source;
    let objects = match book.outcome(source) {
        Some(Outcome::Objects(objects)) => objects.clone(),
        Some(Outcome::Refused(problem)) => {
            let problem = problem.clone();
            return Ok(Verdict::ValidationFailed { problem });
        }
        None => Vec::new(),
    };
    let mut all: Vec<Wanted> = objects.into_iter().map(|object| wanted(document, object)).collect();
    all.sort_by_key(|wanted| wanted.is_pool);
    let uid = document.meta.uid.clone().unwrap_or_default();
    let mut fates = Vec::new();
    for wanted in &all {
        let found = found(legacy, view, wanted);
        fates.push((wanted, fate(wanted, source, &uid, found.as_ref()), found));
    }
    // Half of a conversion would be a class for nobody, or a pool that means another's class.
    if let Some((wanted, ..)) = fates.iter().find(|(_, fate, _)| *fate == Fate::Conflict) {
        return Ok(Verdict::NameConflict { object: title(wanted) });
    }
    let mut verdict = Verdict::Converted;
    for (wanted, fate, found) in fates {
        match fate {
            Fate::Apply => {
                if let Err(refused) = apply(legacy, wanted).await {
                    return rejected(refused);
                }
                info!(source = %source, object = title(wanted), "applied what the source says");
            }
            Fate::Adopted { is_owned } => {
                if let Some(found) = found.filter(|_| is_owned) {
                    let owners = other_owners(&found, &uid);
                    detach(legacy, wanted, &json!({"metadata": {"ownerReferences": owners}})).await?;
                    info!(source = %source, object = title(wanted), "its user has taken the object over");
                }
                verdict = Verdict::Adopted { object: title(wanted) };
            }
            Fate::Keep | Fate::Leaving | Fate::Conflict => {}
        }
    }
    let names: BTreeSet<&str> = all
        .iter()
        .filter(|wanted| !wanted.is_pool)
        .map(|wanted| &*wanted.name)
        .collect();
    remove_unused(legacy, view, source, &names).await?;
    Ok(verdict)
}

fn title(wanted: &Wanted) -> String {
    format!(
        "{} {}",
        wanted.document["kind"].as_str().unwrap_or_default(),
        wanted.name
    )
}

/// What the server does not admit is the source's fault, and trying again would not help.
fn rejected(error: ApiError) -> Result<Verdict, StepError> {
    match error.failure {
        ApiFailure::Rejected => Ok(Verdict::ValidationFailed {
            problem: chain(&error).to_string(),
        }),
        _ => Err(error.into()),
    }
}

fn resource(kind: &NodeClassKind) -> ApiResource {
    let gvk = GroupVersionKind::gvk(kind.group, kind.version, kind.kind);
    ApiResource::from_gvk_with_plural(&gvk, kind.plural)
}

fn found(legacy: &LegacyCtx, view: &View, wanted: &Wanted) -> Option<Value> {
    let object = if wanted.is_pool {
        serde_json::to_value(&**view.pools.named(&wanted.name)?)
    } else {
        serde_json::to_value(&legacy.class(view, &wanted.name)?.object)
    };
    Some(object.expect("an API object is plain data"))
}

async fn apply(legacy: &LegacyCtx, wanted: &Wanted) -> Result<(), ApiError> {
    let writer = &legacy.ctx.writer;
    let (name, document) = (&wanted.name, &wanted.document);
    if wanted.is_pool {
        writer.apply::<NodePool>(&(), FIELD_MANAGER, name, document).await?;
    } else {
        let kind = resource(&legacy.class_kind());
        writer
            .apply::<DynamicObject>(&kind, FIELD_MANAGER, name, document)
            .await?;
    }
    Ok(())
}

async fn detach(legacy: &LegacyCtx, wanted: &Wanted, patch: &Value) -> Result<(), ApiError> {
    let writer = &legacy.ctx.writer;
    if wanted.is_pool {
        writer.merge::<NodePool>(&(), &wanted.name, patch).await?;
    } else {
        let kind = resource(&legacy.class_kind());
        writer.merge::<DynamicObject>(&kind, &wanted.name, patch).await?;
    }
    Ok(())
}

/// A class that was made from the source and that neither it nor any pool wants any more.
async fn remove_unused(
    legacy: &LegacyCtx,
    view: &View,
    source: &Source,
    wanted: &BTreeSet<&str>,
) -> Result<(), ApiError> {
    let kind = legacy.class_kind();
    let is_used = |class: &NodeClass| {
        let mut pools = view.pools.values();
        pools.any(|pool| pool.spec.template.spec.node_class_ref.name == class.name)
    };
    for class in view.classes.values() {
        if wanted.contains(&*class.name) || class.deleting.is_some() || is_used(class) {
            continue;
        }
        let object = serde_json::to_value(&class.object).expect("an API object is plain data");
        if is_managed(&object) && source.is_of(&object) {
            legacy.ctx.writer.delete_of(&resource(&kind), &class.object).await?;
            info!(source = %source, class = class.name, "removed a class that nobody uses any more");
        }
    }
    Ok(())
}

/// The source that an object of v1 was made from, where it says so.
pub fn source_of<K: ResourceExt>(object: &K) -> Option<Source> {
    let (kind, name) = object.annotations().get(compatibility::SOURCE)?.split_once('/')?;
    match kind {
        "Provisioner" => Some(Source::Provisioner(name.to_owned())),
        "AWSNodeTemplate" => Some(Source::NodeTemplate(name.to_owned())),
        _ => None,
    }
}
