//! From an open machine to a launch: the cheapest instance types, and what the claim will say.

use std::collections::BTreeSet;

use model::{InstanceTypeName, LabelValue, Labels, Requirement, Requirements, Resources, Snapshot, vocabulary};

use crate::{
    open::{Open, lacking},
    plan::{Choice, Launch},
    refusal::Lacking,
    round::{MinValuesPolicy, Options},
    template::{STAND_INS, Shape, Template, on_sale},
};

/// Sorts the instance types by price and keeps the cheapest. If those alone lack variety that the pool demands, nothing
/// is launched: the labels they lack are the error.
pub(crate) fn finish(
    snapshot: &Snapshot,
    template: &Template<'_>,
    open: Open,
    options: &Options,
) -> Result<Launch, Vec<Lacking>> {
    let mut priced: Vec<(Choice, usize)> = open
        .shapes
        .iter()
        .filter_map(|index| {
            Some((
                cheapest(&template.shapes[*index], &open.requirements, &open.requests)?,
                *index,
            ))
        })
        .collect();
    priced.sort_by(|(a, _), (b, _)| {
        a.price
            .total_cmp(&b.price)
            .then_with(|| a.instance_type.cmp(&b.instance_type))
    });
    priced.truncate(options.max_instance_types);
    if options.min_values_policy == MinValuesPolicy::Strict {
        let short = lacking(template, &open.requirements, priced.iter().map(|(_, index)| *index));
        if !short.is_empty() {
            return Err(short);
        }
    }
    let shapes: Vec<&Shape<'_>> = priced.iter().map(|(_, index)| &template.shapes[*index]).collect();
    let instance_types: Vec<InstanceTypeName> = shapes.iter().map(|shape| shape.kind.name.clone()).collect();
    let labels = claim_labels(snapshot, template, &open.requirements);
    let requirements = claim_requirements(open.requirements, &shapes);
    let (choice, _) = priced
        .into_iter()
        .next()
        .expect("an open machine has an instance type with room for its pods");
    Ok(Launch {
        pool: template.pool.name.clone(),
        requirements,
        instance_types,
        requests: open.requests.plus(&least_daemons(&shapes)),
        pods: open.pods,
        labels,
        choice,
        min_values_relaxed: open.min_values_relaxed,
    })
}

/// The cheapest offering with room for the pods. Among equal prices the order of capacity types and zones decides.
fn cheapest(shape: &Shape<'_>, requirements: &Requirements, requests: &Resources) -> Option<Choice> {
    let roomy = on_sale(shape.kind, requirements).filter(|offering| requests.fits(&shape.room_under(offering)));
    let best = roomy.min_by(|a, b| {
        let order = (a.capacity_type, &a.zone).cmp(&(b.capacity_type, &b.zone));
        a.price.total_cmp(&b.price).then(order)
    })?;
    Some(Choice {
        instance_type: shape.kind.name.clone(),
        zone: best.zone.clone(),
        capacity_type: best.capacity_type,
        price: best.price,
    })
}

/// What daemons ask for at least, whichever of the types is launched.
fn least_daemons(shapes: &[&Shape<'_>]) -> Resources {
    let mut least = shapes.first().map(|shape| shape.daemons.clone()).unwrap_or_default();
    for shape in shapes {
        least.min_with(&shape.daemons);
    }
    least.without_zeros()
}

/// The pool's labels, and one value for every custom label that the requirements leave open. Well-known labels are the
/// provider's to set.
fn claim_labels(snapshot: &Snapshot, template: &Template<'_>, requirements: &Requirements) -> Labels {
    let pool = template.pool;
    let custom = requirements.iter().filter(|requirement| {
        let key = requirement.key.as_str();
        !snapshot.vocabulary.is_well_known(key) && !snapshot.vocabulary.is_restricted(key)
    });
    let mut labels: Labels = custom
        .filter_map(|requirement| Some((requirement.key.clone(), requirement.any()?)))
        .collect();
    labels.extend(pool.template.labels.clone());
    labels.insert(vocabulary::NODEPOOL.into(), pool.name.as_str().into());
    labels.insert(
        pool.template.class.label().into(),
        pool.template.class.name.as_str().into(),
    );
    labels
}

fn claim_requirements(mut requirements: Requirements, shapes: &[&Shape<'_>]) -> Requirements {
    let names: BTreeSet<LabelValue> = shapes.iter().map(|shape| shape.kind.name.as_str().into()).collect();
    let capacity_types: BTreeSet<LabelValue> = shapes
        .iter()
        .flat_map(|shape| on_sale(shape.kind, &requirements))
        .map(|offering| offering.capacity_type.as_str().into())
        .collect();
    for key in STAND_INS {
        requirements.remove(key);
    }
    for (key, values) in [
        (vocabulary::INSTANCE_TYPE, names),
        (vocabulary::CAPACITY_TYPE, capacity_types),
    ] {
        let least = requirements
            .requirement(key)
            .and_then(|requirement| requirement.min_values);
        requirements.replace(Requirement::one_of(key, values).with_min_values(least));
    }
    requirements
}
