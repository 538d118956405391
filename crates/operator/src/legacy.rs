//! Whether objects of the time of Provisioners are followed, and what has to be known for that.

use std::time::Duration;

use admission::Rules;
use controllers_legacy::Place;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kube::{Api, Client, api::PostParams};
use model::Vocabulary;
use provider::CloudProvider;
use tracing::{info, warn};

use crate::settings::LegacyApis;

/// The kinds of that time share their group and version with nothing else.
const VERSION: &str = "karpenter.sh/v1alpha5";
const PROVISIONERS: &str = "provisioners";
/// How long to wait for a server that could not be asked.
const ASK_AGAIN: Duration = Duration::from_secs(5);

/// What the controllers of that time are given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Legacy {
    pub place: Place,
    /// Where the ConfigMap with the settings of that time lives.
    pub namespace: String,
}

/// What webhooks answer by: the same options by which objects are converted.
pub fn rules(cloud: &dyn CloudProvider, cluster_name: Option<String>) -> Rules {
    let class = cloud.node_classes();
    let class = class.first().expect("a provider serves at least one kind of class");
    Rules {
        options: controllers_legacy::book::options(&Place { cluster_name }, class),
        words: Vocabulary::clone(&cloud.vocabulary()),
    }
}

/// Definitions are left behind when nobody uses them any more. Who may not read Provisioners is not meant to follow them,
/// and waiting for a list that never comes would hold everything up.
async fn is_allowed(client: &Client) -> bool {
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let question = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                group: Some("karpenter.sh".to_owned()),
                resource: Some(PROVISIONERS.to_owned()),
                verb: Some("list".to_owned()),
                ..ResourceAttributes::default()
            }),
            non_resource_attributes: None,
        },
        ..SelfSubjectAccessReview::default()
    };
    match reviews.create(&PostParams::default(), &question).await {
        Ok(answer) if answer.status.as_ref().is_some_and(|status| !status.allowed) => {
            warn!(
                "the cluster has Provisioners that may not be read; hint: legacy.enabled of the chart, or --legacy-apis=false"
            );
            false
        }
        Ok(_) => {
            info!("the cluster has Provisioners; their NodePools are kept in step");
            true
        }
        Err(error) => {
            warn!(%error, "whether Provisioners may be read cannot be asked; they are left alone");
            false
        }
    }
}

/// Asks the server, where the setting leaves it to what the server has. One question, at the start.
pub async fn is_wanted(client: &Client, choice: LegacyApis) -> bool {
    match choice {
        LegacyApis::On => true,
        LegacyApis::Off => false,
        LegacyApis::Auto => loop {
            match client.list_api_group_resources(VERSION).await {
                Ok(list) => {
                    let served = list.resources.iter().any(|resource| resource.name == PROVISIONERS);
                    return served && is_allowed(client).await;
                }
                // A group of which nothing is served does not exist.
                Err(kube::Error::Api(status)) if status.code == 404 => return false,
                Err(error) => warn!(%error, "{VERSION} cannot be looked up yet"),
            }
            tokio::time::sleep(ASK_AGAIN).await;
        },
    }
}
