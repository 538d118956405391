//! Everything to v1beta1.

use std::collections::{BTreeMap, BTreeSet};

use api::aws::{EC2NodeClassSpec, KubeletConfiguration, MetadataOptions, Switch, TokenPolicy};
use api::v1::{NodeClaimSpec, NodePoolSpec};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::draft::{Draft, Role};
use super::kind::Kind;
use super::{Source, claims, other, refused};
use crate::alpha;
use crate::beta::{self, V1BETA1};
use crate::context::Context;
use crate::manifest;
use crate::notes::{Change, Notes, Reason};

pub fn drafts(sources: &[Source<'_>], context: &Context<'_>) -> Vec<Draft> {
    let is_class = |source: &&Source<'_>| matches!(source.kind, Kind::NodeTemplate | Kind::BetaClass | Kind::Class);
    let classes: BTreeSet<&str> = sources.iter().filter(is_class).map(Source::name).collect();
    let kubelets = Kubelets::of(sources);
    let mut drafts = Vec::new();
    for source in sources {
        match source.kind {
            Kind::Provisioner(generation) => drafts.extend(super::provisioner(source, generation, &classes, context)),
            Kind::NodeTemplate => drafts.push(super::node_template(source, context)),
            Kind::Machine => drafts.push(machine(source, context)),
            Kind::Pool => drafts.push(pool(source, &kubelets, context)),
            Kind::Class => drafts.push(class(source, &kubelets, context)),
            Kind::Claim => drafts.push(claim(source, &source.object, context)),
            Kind::TooOld => drafts.push(refused(source, "apiVersion", Reason::TooOld)),
            Kind::BetaPool | Kind::BetaClaim | Kind::BetaClass => {
                drafts.push(Draft::kept(source, source.object.clone().into_owned()));
            }
            Kind::Settings | Kind::Values | Kind::Other => drafts.push(other(source, context.options)),
            Kind::LaunchTemplates => {}
        }
    }
    drafts
}

/// The kubelet settings of classes, and the classes that pools refer to.
struct Kubelets {
    of_class: BTreeMap<String, KubeletConfiguration>,
    used: BTreeSet<String>,
}

impl Kubelets {
    fn of(sources: &[Source<'_>]) -> Self {
        let mut of_class = BTreeMap::new();
        let mut used = BTreeSet::new();
        for source in sources {
            match source.kind {
                Kind::Class => {
                    let mut kubelet = source.object.pointer("/spec/kubelet").cloned().unwrap_or_default();
                    manifest::quote_kubelet(&mut kubelet);
                    if let Ok(Some(kubelet)) = serde_json::from_value::<Option<KubeletConfiguration>>(kubelet) {
                        of_class.insert(source.name().to_owned(), kubelet);
                    }
                }
                Kind::Pool => used.extend(class_of(&source.object).map(str::to_owned)),
                _ => {}
            }
        }
        Self { of_class, used }
    }
}

fn class_of(pool: &Value) -> Option<&str> {
    pool.pointer("/spec/template/spec/nodeClassRef/name")?.as_str()
}

/// Reads a spec of v1. What this build does not know cannot be carried over either.
fn spec<T: Serialize + DeserializeOwned>(object: &Value, force: bool, notes: &mut Notes) -> Option<T> {
    let read = manifest::read::<T>(object, "spec", notes)?;
    for field in read.unknown {
        notes.lose(field, V1BETA1, force);
    }
    Some(read.value)
}

fn pool(source: &Source<'_>, kubelets: &Kubelets, context: &Context<'_>) -> Draft {
    let mut notes = Notes::on(source.subject.clone());
    let force = context.options.force;
    let Some(spec) = spec::<NodePoolSpec>(&source.object, force, &mut notes) else {
        return Draft {
            notes,
            ..Draft::kept(source, source.object.clone().into_owned())
        };
    };
    beta::node_pool::check_kubelet(&source.object, &mut notes);
    let mut metadata = manifest::metadata(&source.object);
    // An annotation of 1.0 overrides the class, so the class only speaks where there is none.
    if manifest::annotation(&source.object, beta::annotations::KUBELET).is_none()
        && let Some(kubelet) = class_of(&source.object).and_then(|class| kubelets.of_class.get(class))
    {
        beta::node_pool::put_kubelet(&mut metadata, Some(kubelet));
    }
    let spec = beta::node_pool::down(spec, &mut metadata, force, &mut notes);
    Draft::made(
        source,
        manifest::object("karpenter.sh/v1beta1", "NodePool", metadata, spec),
        Role::None,
        notes,
    )
}

fn class(source: &Source<'_>, kubelets: &Kubelets, context: &Context<'_>) -> Draft {
    let mut notes = Notes::on(source.subject.clone());
    let force = context.options.force;
    let mut object = source.object.clone().into_owned();
    if let Some(kubelet) = object.pointer_mut("/spec/kubelet") {
        manifest::quote_kubelet(kubelet);
    }
    let Some(mut spec) = spec::<EC2NodeClassSpec>(&object, force, &mut notes) else {
        return Draft {
            notes,
            ..Draft::kept(source, object)
        };
    };
    if spec.kubelet.take().is_some() && !kubelets.used.contains(source.name()) {
        if force {
            notes.warn("spec.kubelet", Change::Forced { to: V1BETA1 });
        } else {
            notes.refuse("spec.kubelet", Reason::KubeletWithoutPool);
        }
    }
    spec.metadata_options = Some(explicit(spec.metadata_options.unwrap_or_default()));
    let mut metadata = manifest::metadata(&object);
    let spec = beta::node_class::down(spec, &mut metadata, force, &mut notes);
    let object = manifest::object("karpenter.k8s.aws/v1beta1", "EC2NodeClass", metadata, spec);
    Draft::made(source, object, Role::None, notes)
}

/// v1's defaults, which v1beta1 does not share.
fn explicit(written: MetadataOptions) -> MetadataOptions {
    MetadataOptions {
        http_endpoint: written.http_endpoint.or(Some(Switch::Enabled)),
        http_protocol_ipv6: written.http_protocol_ipv6.or(Some(Switch::Disabled)),
        http_put_response_hop_limit: written.http_put_response_hop_limit.or(Some(1)),
        http_tokens: written.http_tokens.or(Some(TokenPolicy::Required)),
    }
}

/// A machine goes by way of v1, where it is a claim already.
fn machine(source: &Source<'_>, context: &Context<'_>) -> Draft {
    let mut notes = Notes::on(source.subject.clone());
    match alpha::machine::node_claim(&source.object, Some(&alpha::machine::PoolFacts::default()), &mut notes) {
        Some(v1) => {
            let mut draft = claim(source, &v1, context);
            notes.warnings.retain(|warning| !draft.notes.warnings.contains(warning));
            draft.notes.warnings.extend(notes.warnings);
            draft
        }
        None => Draft {
            notes,
            ..Draft::kept(source, source.object.clone().into_owned())
        },
    }
}

fn claim(source: &Source<'_>, object: &Value, context: &Context<'_>) -> Draft {
    let mut notes = Notes::on(source.subject.clone());
    notes.warn("", Change::IsState { kind: "NodeClaim" });
    let force = context.options.force;
    let Some(spec) = spec::<NodeClaimSpec>(object, force, &mut notes) else {
        return Draft {
            notes,
            ..Draft::kept(source, source.object.clone().into_owned())
        };
    };
    let mut metadata = claims::metadata(object, "karpenter.sh/v1beta1");
    let spec = beta::node_claim::down(spec, &mut metadata, force, &mut notes);
    let mut made = manifest::object("karpenter.sh/v1beta1", "NodeClaim", metadata, spec);
    if let Some(status) = object.get("status").filter(|status| !manifest::is_empty(status)) {
        made["status"] = status.clone();
    }
    Draft::made(source, made, Role::None, notes)
}
