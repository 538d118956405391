//! The images of a class.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use api::aws::{Ami, AmiRequirement, AmiSelectorTerm, EC2NodeClass};
use clock::Clock;
use jiff::{SignedDuration, Timestamp};
use model::{Requirement, Requirements};
use tracing::debug;

use super::{Alias, ClassKey, Parameters, UnsupportedAlias, Version, class_key};
use crate::{
    cache::Cache,
    error::AwsError,
    instance_type::kubernetes_architecture,
    ports::{Ec2, Filter, ImageInfo, ImageQuery},
};

#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    #[error(transparent)]
    Unsupported(#[from] UnsupportedAlias),
    #[error("SSM has none of the parameters of alias {0:?}")]
    NoParameter(String),
    #[error("the SSM parameter {name} could not be read")]
    Parameter {
        name: String,
        #[source]
        cause: AwsError,
    },
    #[error("images could not be listed")]
    List(#[source] AwsError),
}

/// What images of known ids are for. Images that are not in it are for every type of their architecture.
type Uses = BTreeMap<String, Vec<Requirements>>;

/// Finds the images of classes.
pub struct Images {
    ec2: Arc<dyn Ec2>,
    parameters: Parameters,
    clock: Arc<dyn Clock>,
    found: Cache<(ClassKey, Vec<ImageQuery>), Vec<ImageInfo>>,
}

impl Images {
    pub fn new(ec2: Arc<dyn Ec2>, parameters: Parameters, clock: Arc<dyn Clock>, refresh: Duration) -> Self {
        let ttl = SignedDuration::try_from(refresh).unwrap_or(SignedDuration::MAX);
        Self {
            found: Cache::new(clock.clone(), ttl),
            ec2,
            parameters,
            clock,
        }
    }

    /// The images that the class selects, best first.
    pub async fn of(&self, class: &EC2NodeClass, cluster: Version) -> Result<Vec<Ami>, ImageError> {
        let (queries, uses) = self.queries(&class.spec.ami_selector_terms, cluster).await?;
        let key = (class_key(class), queries.clone());
        let fetch = async {
            let mut images: Vec<ImageInfo> = Vec::new();
            for query in &queries {
                images.extend(self.ec2.images(query).await.map_err(ImageError::List)?);
            }
            Ok::<_, ImageError>(images)
        };
        let images = self.found.get_or_fetch(key, fetch).await?;
        Ok(selected(images, &uses, self.clock.now()))
    }

    /// Forgets parameters whose image has been deprecated, so that a release that was taken back is seen soon.
    pub async fn forget_deprecated(&self) -> Result<(), AwsError> {
        for (name, image) in self.parameters.mutable() {
            let query = by_id([image]);
            let images = self.ec2.images(&query).await?;
            let now = self.clock.now();
            if images.iter().any(|image| is_deprecated(image, now)) {
                debug!(parameter = name, "the image is deprecated");
                self.parameters.forget(&name);
            }
        }
        Ok(())
    }

    async fn queries(
        &self,
        terms: &[AmiSelectorTerm],
        cluster: Version,
    ) -> Result<(Vec<ImageQuery>, Uses), ImageError> {
        let mut ids = BTreeSet::new();
        let mut queries = Vec::new();
        let mut uses = Uses::new();
        for term in terms {
            if let Some(id) = &term.id {
                ids.insert(id.clone());
            } else if let Some(alias) = &term.alias {
                uses.extend(self.of_alias(alias, cluster).await?);
            } else if let Some(name) = &term.ssm_parameter {
                ids.extend(self.of_parameter(name).await?);
            } else {
                queries.push(query_of(term));
            }
        }
        ids.extend(uses.keys().cloned());
        if !ids.is_empty() {
            queries.insert(0, by_id(ids));
        }
        Ok((queries, uses))
    }

    /// The images of an alias. Single parameters may be missing, as not every release has every flavour.
    async fn of_alias(&self, text: &str, cluster: Version) -> Result<Uses, ImageError> {
        let mut uses = Uses::new();
        for parameter in Alias::parse(text)?.parameters(cluster)? {
            match self.parameters.of_alias(&parameter.name, parameter.mutable).await {
                Ok(image) => uses.entry(image).or_default().extend(parameter.uses),
                Err(error) => debug!(parameter = parameter.name, %error, "no image for this flavour"),
            }
        }
        if uses.is_empty() {
            return Err(ImageError::NoParameter(text.to_owned()));
        }
        Ok(uses)
    }

    async fn of_parameter(&self, name: &str) -> Result<Option<String>, ImageError> {
        match self.parameters.of_user(name).await {
            Ok(value) if value.starts_with("ami-") => Ok(Some(value)),
            Ok(_) => Ok(None),
            Err(error) if error.is_not_found() => Ok(None),
            Err(cause) => Err(ImageError::Parameter {
                name: name.to_owned(),
                cause,
            }),
        }
    }
}

fn available() -> Filter {
    Filter::new("state", ["available"])
}

fn by_id(ids: impl IntoIterator<Item = String>) -> ImageQuery {
    ImageQuery {
        filters: vec![Filter::new("image-id", ids), available()],
        owners: Vec::new(),
    }
}

/// A term by name, tags or owner. A name alone could be anybody's, so that it is looked for with known owners only.
fn query_of(term: &AmiSelectorTerm) -> ImageQuery {
    let mut filters: Vec<Filter> = term
        .name
        .iter()
        .map(|name| Filter::new("name", [name.as_str()]))
        .collect();
    filters.extend(Filter::tags(term.tags.iter().flatten()));
    filters.push(available());
    let owners = match (&term.owner, &term.name) {
        (Some(owner), _) => vec![owner.clone()],
        (None, Some(_)) => ["self", "amazon"].map(str::to_owned).to_vec(),
        (None, None) => Vec::new(),
    };
    ImageQuery { filters, owners }
}

fn is_deprecated(image: &ImageInfo, now: Timestamp) -> bool {
    let at = image
        .deprecated_at
        .as_deref()
        .and_then(|text| text.parse::<Timestamp>().ok());
    at.is_some_and(|at| at <= now)
}

/// A date that cannot be read counts as the oldest.
fn created(image: &ImageInfo) -> Timestamp {
    image.created.parse().unwrap_or(Timestamp::MIN)
}

/// One image per set of requirements, the best of its kind; newest first.
fn selected(images: Vec<ImageInfo>, uses: &Uses, now: Timestamp) -> Vec<Ami> {
    let mut best: Vec<(Requirements, &ImageInfo)> = Vec::new();
    for image in &images {
        let Some(arch) = kubernetes_architecture(&image.architecture) else {
            continue;
        };
        let any_use = vec![Requirements::default()];
        for one in uses.get(&image.id).unwrap_or(&any_use) {
            let mut requirements = one.clone();
            requirements.add(Requirement::one_of(api::labels::ARCH, [arch]));
            match best.iter_mut().find(|(known, _)| *known == requirements) {
                Some((_, present)) if is_better(image, present, now) => *present = image,
                Some(_) => {}
                None => best.push((requirements, image)),
            }
        }
    }
    best.sort_by_key(|(_, image)| (Reverse(created(image)), image.id.clone()));
    let ami = |(requirements, image): (Requirements, &ImageInfo)| Ami {
        id: image.id.clone(),
        name: Some(image.name.clone()),
        deprecated: is_deprecated(image, now).then_some(true),
        requirements: written(&requirements),
    };
    best.into_iter().map(ami).collect()
}

fn is_better(image: &ImageInfo, than: &ImageInfo, now: Timestamp) -> bool {
    let rank = |image: &ImageInfo| (!is_deprecated(image, now), created(image), image.name.clone());
    rank(image) > rank(than)
}

/// As the status has them: short keys first.
fn written(requirements: &Requirements) -> Vec<AmiRequirement> {
    let mut all: Vec<AmiRequirement> = requirements
        .to_selector()
        .into_iter()
        .map(|requirement| AmiRequirement {
            key: requirement.key.to_string(),
            operator: requirement.operator.to_string(),
            values: (!requirement.values.is_empty())
                .then(|| requirement.values.iter().map(ToString::to_string).collect()),
        })
        .collect();
    all.sort_by(|a, b| (a.key.len(), &a.key).cmp(&(b.key.len(), &b.key)));
    all
}

#[cfg(test)]
mod tests;
