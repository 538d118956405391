//! Launch templates in EC2: made when they are missing, removed when nobody has used them for long.
//!
//! Upstream removes a template a minute after its last use, and makes it again at the next launch. Both are changing calls
//! and count against a small quota, so that templates are kept longer here.

use std::{collections::BTreeMap, sync::Arc};

use clock::Clock;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

use crate::{
    error::AwsError,
    launch::template::Plan,
    ports::{Ec2, Filter, Template, TemplateKey, TemplateQuery},
    tags,
};

/// How long a template may go unused.
const UNUSED_FOR: SignedDuration = SignedDuration::from_hours(1);

#[derive(Debug, thiserror::Error)]
#[error("the launch template {name} could not be {verb}")]
pub struct TemplateFailed {
    pub name: String,
    pub verb: &'static str,
    #[source]
    pub cause: AwsError,
}

struct Known {
    template: Template,
    last_used: Timestamp,
}

/// The templates of the cluster.
pub struct Templates {
    ec2: Arc<dyn Ec2>,
    clock: Arc<dyn Clock>,
    cluster: String,
    known: Mutex<BTreeMap<String, Known>>,
    /// One caller per template asks EC2; launches with other templates do not wait.
    turns: Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

impl Templates {
    pub fn new(ec2: Arc<dyn Ec2>, clock: Arc<dyn Clock>, cluster: &str) -> Self {
        Self {
            ec2,
            clock,
            cluster: cluster.to_owned(),
            known: Mutex::default(),
            turns: Mutex::default(),
        }
    }

    /// Makes sure that the template exists.
    pub async fn ensure(&self, plan: &Plan) -> Result<(), TemplateFailed> {
        if self.touch(&plan.name) {
            return Ok(());
        }
        let turn = self.turns.lock().entry(plan.name.clone()).or_default().clone();
        let _turn = turn.lock().await;
        if self.touch(&plan.name) {
            return Ok(());
        }
        let failed = |verb| {
            let name = plan.name.clone();
            move |cause| TemplateFailed { name, verb, cause }
        };
        let template = match self.find(&plan.name).await.map_err(failed("looked up"))? {
            Some(template) => template,
            None => {
                let made = self
                    .ec2
                    .create_launch_template(&plan.name, &plan.tags, &plan.data)
                    .await;
                match made {
                    // Another replica was faster; names stand for contents.
                    Err(error) if error.is_already_there() => Template {
                        id: String::new(),
                        name: plan.name.clone(),
                    },
                    made => made.map_err(failed("created"))?,
                }
            }
        };
        self.remember(template);
        self.turns.lock().remove(&plan.name);
        Ok(())
    }

    /// The id of a template that was made sure of.
    pub fn id(&self, name: &str) -> Option<String> {
        let known = self.known.lock();
        let id = known.get(name).map(|known| known.template.id.clone());
        id.filter(|id| !id.is_empty())
    }

    fn touch(&self, name: &str) -> bool {
        let now = self.clock.now();
        let mut known = self.known.lock();
        let found = known.get_mut(name);
        found.map(|known| known.last_used = now).is_some()
    }

    fn remember(&self, template: Template) {
        let last_used = self.clock.now();
        let name = template.name.clone();
        self.known.lock().insert(name, Known { template, last_used });
    }

    async fn find(&self, name: &str) -> Result<Option<Template>, AwsError> {
        match self.ec2.launch_templates(&TemplateQuery::Name(name.to_owned())).await {
            Ok(found) => Ok(found.into_iter().next()),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// EC2 said that these do not exist; the next launch looks again.
    pub fn forget(&self, names: impl IntoIterator<Item = String>) {
        let mut known = self.known.lock();
        for name in names {
            known.remove(&name);
        }
    }

    /// Takes over what an earlier process left, so that it is removed in its time.
    pub async fn take_over(&self) -> Result<(), AwsError> {
        let own = TemplateQuery::Matching(vec![Filter::tag(tags::CLUSTER_NAME, &self.cluster)]);
        for template in self.ec2.launch_templates(&own).await? {
            if !self.touch(&template.name) {
                self.remember(template);
            }
        }
        Ok(())
    }

    /// Removes what has not been used for long. What cannot be removed is tried again the next time.
    pub async fn sweep(&self) -> Result<(), TemplateFailed> {
        let now = self.clock.now();
        let is_old = |known: &Known| now.duration_since(known.last_used) >= UNUSED_FOR;
        let old: Vec<Template> = {
            let known = self.known.lock();
            known
                .values()
                .filter(|known| is_old(known))
                .map(|known| known.template.clone())
                .collect()
        };
        for template in old {
            // A launch may have used it since; then it stays.
            let is_unused = self.known.lock().get(&template.name).is_some_and(is_old);
            if is_unused {
                self.delete(&template).await?;
            }
        }
        Ok(())
    }

    async fn delete(&self, template: &Template) -> Result<(), TemplateFailed> {
        let key = match template.id.is_empty() {
            true => TemplateKey::Name(template.name.clone()),
            false => TemplateKey::Id(template.id.clone()),
        };
        match self.ec2.delete_launch_template(&key).await {
            Err(error) if !error.is_not_found() => Err(TemplateFailed {
                name: template.name.clone(),
                verb: "deleted",
                cause: error,
            }),
            _ => {
                self.forget([template.name.clone()]);
                Ok(())
            }
        }
    }

    /// Removes every template of a class that goes.
    pub async fn delete_all_of(&self, class: &str) -> Result<(), TemplateFailed> {
        let own = TemplateQuery::Matching(vec![
            Filter::tag(tags::CLUSTER_NAME, &self.cluster),
            Filter::tag(tags::NODE_CLASS, class),
        ]);
        let found = self.ec2.launch_templates(&own).await;
        let found = found.map_err(|cause| TemplateFailed {
            name: class.to_owned(),
            verb: "listed",
            cause,
        })?;
        for template in found {
            let by_name = Template {
                id: String::new(),
                ..template
            };
            self.delete(&by_name).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        ports::{Metadata, Placement, TemplateData},
        testing::fake::FakeAws,
    };

    fn plan(name: &str, class: &str) -> Plan {
        Plan {
            name: name.to_owned(),
            tags: [
                (tags::CLUSTER_NAME.to_owned(), "demo".to_owned()),
                (tags::NODE_CLASS.to_owned(), class.to_owned()),
            ]
            .into(),
            data: TemplateData {
                tags: Vec::new(),
                volumes: Vec::new(),
                instance_profile: String::new(),
                detailed_monitoring: false,
                image_id: String::new(),
                user_data: String::new(),
                metadata: Metadata {
                    endpoint: None,
                    ipv6: None,
                    hop_limit: None,
                    tokens: None,
                },
                interfaces: Vec::new(),
                placement: Placement::default(),
                enclaves: false,
                nested_virtualization: None,
                reservation: None,
                market: None,
            },
            types: Vec::new(),
            reservation: None,
        }
    }

    fn templates(aws: &FakeAws) -> Templates {
        Templates::new(aws.ports().ec2, aws.clock(), "demo")
    }

    /// AW24.11.16
    #[tokio::test(start_paused = true)]
    async fn a_template_is_made_once_and_looked_for_again_when_it_is_forgotten() {
        let aws = FakeAws::new();
        let templates = templates(&aws);
        let one = plan("one", "default");
        let (first, second) = futures::join!(templates.ensure(&one), templates.ensure(&one));
        assert!(first.is_ok() && second.is_ok());
        templates.ensure(&one).await.unwrap();
        assert_eq!(
            (aws.calls("DescribeLaunchTemplates"), aws.calls("CreateLaunchTemplate")),
            (1, 1)
        );
        templates.forget(["one".to_owned()]);
        templates.ensure(&one).await.unwrap();
        assert_eq!(
            (aws.calls("DescribeLaunchTemplates"), aws.calls("CreateLaunchTemplate")),
            (2, 1)
        );
        aws.fail("DescribeLaunchTemplates", AwsError::new("InternalError", "x"));
        let failed = templates.ensure(&plan("two", "default")).await.unwrap_err();
        assert_eq!(failed.verb, "looked up");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_unused_for_long_is_removed_also_when_another_process_made_it() {
        let aws = FakeAws::new();
        templates(&aws).ensure(&plan("left-over", "default")).await.unwrap();
        let templates = templates(&aws);
        templates.take_over().await.unwrap();
        templates.ensure(&plan("one", "default")).await.unwrap();
        tokio::time::advance(Duration::from_secs(1800)).await;
        templates.ensure(&plan("one", "default")).await.unwrap();
        tokio::time::advance(Duration::from_secs(1801)).await;
        aws.fail("DeleteLaunchTemplate", AwsError::new("InternalError", "x"));
        assert!(templates.sweep().await.is_err());
        templates.sweep().await.unwrap();
        assert_eq!(aws.template_names(), ["one"]);
    }

    /// AW24.8.1
    #[tokio::test(start_paused = true)]
    async fn a_class_takes_its_templates_along() {
        let aws = FakeAws::new();
        let templates = templates(&aws);
        for (name, class) in [("one", "default"), ("two", "default"), ("three", "other")] {
            templates.ensure(&plan(name, class)).await.unwrap();
        }
        aws.fail("DeleteLaunchTemplate", AwsError::new("InternalError", "x"));
        assert!(templates.delete_all_of("default").await.is_err());
        templates.delete_all_of("default").await.unwrap();
        assert_eq!(aws.template_names(), ["three"]);
    }
}
