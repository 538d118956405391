//! Many documents at once: what one of them says may decide what becomes of another.

mod claims;
mod down;
mod draft;
pub(crate) mod kind;
mod kubelets;
mod provisioner;
mod up;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use self::draft::Draft;
use self::kind::Kind;
use self::provisioner::{node_template, provisioner};
use crate::alpha::launch_template::{DESCRIPTION_FIELD, Description};
use crate::context::{Context, Facts};
use crate::notes::{Change, Notes, Reason, Refusal, Subject, Warning};
use crate::options::{Options, Target};
use crate::{manifest, settings, values, workloads};

/// A document: an object, Helm values, or the description of a launch template.
#[derive(Clone, Debug)]
pub struct Input {
    /// Where it stands, for messages.
    pub place: String,
    pub object: Value,
}

/// What became of the documents, in their order.
#[derive(Clone, Debug, Default)]
pub struct Conversion {
    pub outputs: Vec<Output>,
    pub warnings: Vec<Warning>,
    /// Kinds that are none of Karpenter's, and how many objects of each were passed on.
    pub others: BTreeMap<String, usize>,
    /// Whether there was anything of Karpenter's at all.
    pub recognized: bool,
}

/// One document of the result.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// The input of this number, as it is.
    Kept { input: usize, object: Value },
    /// Something new in place of the input of this number. The comments say how its meaning changed.
    Made {
        input: usize,
        object: Value,
        comments: Vec<String>,
    },
}

impl Conversion {
    pub fn objects(&self) -> impl Iterator<Item = &Value> {
        self.outputs.iter().map(Output::object)
    }

    /// Whether anything is different from the input.
    pub fn changes_anything(&self) -> bool {
        self.outputs.iter().any(|output| matches!(output, Output::Made { .. }))
    }
}

impl Output {
    pub fn object(&self) -> &Value {
        match self {
            Output::Kept { object, .. } | Output::Made { object, .. } => object,
        }
    }
}

/// A document that is about to be converted.
struct Source<'a> {
    input: usize,
    kind: Kind,
    object: Cow<'a, Value>,
    subject: Subject,
    /// The chart made it of Helm values, which leave the cluster's name to their user.
    from_chart: bool,
}

impl Source<'_> {
    fn name(&self) -> &str {
        manifest::name(&self.object)
    }
}

/// Converts all documents, or none.
pub fn convert(inputs: &[Input], options: &Options) -> Result<Conversion, Vec<Refusal>> {
    let sources = sources(inputs);
    let (context, mut refusals) = context(&sources, options);
    let mut drafts = match options.target {
        Target::V1 => up::drafts(&sources, &context),
        Target::V1Beta1 => down::drafts(&sources, &context),
    };
    refusals.extend(clashes(&drafts));
    for draft in &mut drafts {
        refusals.append(&mut draft.notes.refusals);
        // What stood in values has no text of its own.
        let in_values = kind::of(&inputs[draft.input].object) == Kind::Values;
        draft.changed |= in_values && !manifest::text(&draft.object, "kind").is_empty();
    }
    if refusals.is_empty() {
        Ok(conversion(&sources, drafts, options))
    } else {
        Err(refusals)
    }
}

/// What flags, settings, values and descriptions say. A flag wins over what is found.
fn context<'a>(sources: &[Source<'_>], options: &'a Options) -> (Context<'a>, Vec<Refusal>) {
    let mut facts = Facts {
        cluster_name: options.cluster_name.clone(),
        default_instance_profile: options.default_instance_profile.clone(),
        tags: options.global_tags.clone(),
        unlimited_density: false,
    };
    let mut refusals = Vec::new();
    let mut launch_templates = Vec::new();
    for source in sources {
        match source.kind {
            Kind::Settings => facts.fill(settings::facts_of_config_map(&source.object)),
            Kind::Values => {
                facts.fill(values::facts(&source.object));
                refusals.extend(unfit_objects(source));
            }
            Kind::LaunchTemplates => match described(&source.object) {
                Ok(described) => launch_templates.extend(described),
                Err(problem) => refusals.push(Refusal {
                    subject: source.subject.clone(),
                    field: DESCRIPTION_FIELD.to_owned(),
                    reason: Reason::Unreadable { problem },
                }),
            },
            _ => {}
        }
    }
    let context = Context {
        options,
        facts,
        launch_templates,
    };
    (context, refusals)
}

fn conversion(sources: &[Source<'_>], drafts: Vec<Draft>, options: &Options) -> Conversion {
    let mut conversion = Conversion {
        recognized: sources.iter().any(|source| source.kind != Kind::Other),
        ..Conversion::default()
    };
    let is_provisioner = |source: &Source<'_>| matches!(source.kind, Kind::Provisioner(_));
    if options.target == Target::V1 && sources.iter().any(is_provisioner) {
        let changes = [Change::DriftIsOn, Change::PodsAreNotBound];
        conversion.warnings.extend(changes.map(for_every_pool));
    }
    for source in sources.iter().filter(|source| source.kind == Kind::Other) {
        let kind = manifest::text(&source.object, "kind").to_owned();
        *conversion.others.entry(kind).or_default() += 1;
    }
    for draft in drafts {
        let (output, warnings) = draft.finished();
        conversion.outputs.push(output);
        conversion.warnings.extend(warnings);
    }
    conversion
}

fn for_every_pool(change: Change) -> Warning {
    let (place, object) = (String::new(), "every NodePool".to_owned());
    Warning {
        subject: Subject { place, object },
        field: String::new(),
        change,
    }
}

/// The inputs with their kinds. What the chart made of values follows them: its own Provisioner, and objects passed on.
fn sources(inputs: &[Input]) -> Vec<Source<'_>> {
    let mut sources = Vec::new();
    for (index, input) in inputs.iter().enumerate() {
        let kind = kind::of(&input.object);
        let subject = |object: &Value| Subject {
            place: input.place.clone(),
            object: kind::title(object),
        };
        let (mut provisioner, mut extra) = (None, Vec::new());
        if kind == Kind::Values {
            provisioner = values::default_provisioner(&input.object);
            extra = values::extra_objects(&input.object);
        }
        sources.push(Source {
            input: index,
            kind,
            subject: subject(&input.object),
            object: Cow::Borrowed(&input.object),
            from_chart: false,
        });
        if let Some(provisioner) = provisioner {
            sources.push(Source {
                input: index,
                kind: kind::of(&provisioner),
                subject: subject(&provisioner),
                object: Cow::Owned(provisioner),
                from_chart: true,
            });
        }
        let extra = extra.into_iter().filter_map(|extra| extra.object.ok());
        sources.extend(extra.map(|object| Source {
            input: index,
            kind: kind::of(object),
            subject: subject(object),
            object: Cow::Borrowed(object),
            from_chart: false,
        }));
    }
    sources
}

/// What the values pass on and nobody but the old chart could make an object of.
fn unfit_objects(values: &Source<'_>) -> Vec<Refusal> {
    let extra = values::extra_objects(&values.object).into_iter();
    let unfit = extra.filter_map(|extra| Some((extra.field, extra.object.err()?)));
    unfit
        .map(|(field, problem)| Refusal {
            subject: values.subject.clone(),
            field,
            reason: Reason::Invalid {
                problem: problem.to_owned(),
            },
        })
        .collect()
}

fn described(document: &Value) -> Result<Vec<Description>, String> {
    serde_path_to_error::deserialize(&document[DESCRIPTION_FIELD]).map_err(|error| error.to_string())
}

/// Two objects of one kind and name would overwrite each other. If they did so before, that is not for us to judge.
fn clashes(drafts: &[Draft]) -> Vec<Refusal> {
    let mut seen = BTreeMap::new();
    let mut refusals = Vec::new();
    for draft in drafts.iter().filter(|draft| draft.is_karpenters()) {
        let object = kind::title(&draft.object);
        let before = seen.insert(object.clone(), draft.changed);
        if before.is_some_and(|changed| changed || draft.changed) {
            refusals.push(Refusal {
                subject: draft.notes.subject.clone(),
                field: "metadata.name".to_owned(),
                reason: Reason::NameTaken { object },
            });
        }
    }
    refusals
}

/// Objects that neither direction looks into.
fn other(source: &Source<'_>, options: &Options) -> Draft {
    let mut object = source.object.clone().into_owned();
    let changed = options.rewrite_workloads && workloads::rewrite(&mut object);
    Draft {
        changed,
        ..Draft::kept(source, object)
    }
}

/// A document that is refused as a whole.
fn refused(source: &Source<'_>, field: &str, reason: Reason) -> Draft {
    let mut notes = Notes::on(source.subject.clone());
    notes.refuse(field, reason);
    Draft {
        notes,
        ..Draft::kept(source, source.object.clone().into_owned())
    }
}
