//! No rule of the chart's roles can be spared: without any one of them, a request that the program makes is refused.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use k8s_openapi::api::{
    authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
    rbac::v1::{ClusterRole, PolicyRule, Role},
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

const USER: &str = "system:serviceaccount:kube-system:karpenter";
/// The API server takes notice of changed roles by a watch; this is how long it may take.
const NOTICE: Duration = Duration::from_secs(10);
/// Rules for objects of a kind of AWS, which the simulated provider leaves alone.
pub const FOR_AWS: &str = "karpenter.k8s.aws";

/// What rules give by name.
const NAMED: [&str; 7] = [
    "configmaps",
    "customresourcedefinitions",
    "leases",
    "mutatingwebhookconfigurations",
    "secrets",
    "services",
    "validatingwebhookconfigurations",
];

/// A request, as far as roles tell requests apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Request {
    verb: String,
    group: String,
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

/// Rules of a role that are to be proven.
pub struct Rules {
    role: &'static str,
    are_meant: fn(&str) -> bool,
}

impl Rules {
    pub fn all_of(role: &'static str) -> Self {
        Self::of(role, |_| true)
    }

    /// Those of which this is true; it is asked with verbs, resources and groups of each.
    pub fn of(role: &'static str, are_meant: fn(&str) -> bool) -> Self {
        Self { role, are_meant }
    }
}

/// What the program asked for and was allowed, each once.
pub fn requests(audit: &[Value]) -> BTreeSet<Request> {
    let text = |event: &Value, place: &str| {
        let found = event.pointer(place).and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    };
    let allowed = audit
        .iter()
        .filter(|event| text(event, "/annotations/authorization.k8s.io~1decision") == "allow");
    allowed
        .filter(|event| !text(event, "/objectRef/resource").is_empty())
        .map(|event| {
            let resource = text(event, "/objectRef/resource");
            // Only rules for these name objects; elsewhere names would make every request another one.
            let is_named = NAMED.contains(&&*resource);
            let named = |place: &str| if is_named { text(event, place) } else { String::new() };
            Request {
                verb: text(event, "/verb"),
                group: text(event, "/objectRef/apiGroup"),
                subresource: text(event, "/objectRef/subresource"),
                namespace: named("/objectRef/namespace"),
                name: named("/objectRef/name"),
                resource,
            }
        })
        .collect()
}

/// Takes every one of these rules, of the cluster and of `kube-system`, away in turn and gives it back.
pub async fn prove(client: &Client, requests: &BTreeSet<Request>, everywhere: &[Rules], here: &[Rules]) {
    let mut spare = Vec::new();
    for meant in everywhere {
        let roles: Api<ClusterRole> = Api::all(client.clone());
        let rules = roles.get(meant.role).await.expect("the role").rules.expect("rules");
        spare.extend(self::spare(client, &roles, meant, &rules, requests).await);
    }
    for meant in here {
        let roles: Api<Role> = Api::namespaced(client.clone(), "kube-system");
        let rules = roles.get(meant.role).await.expect("the role").rules.expect("rules");
        spare.extend(self::spare(client, &roles, meant, &rules, requests).await);
    }
    assert!(
        spare.is_empty(),
        "nobody would miss these rules: {spare:#?}\nrequests: {requests:#?}"
    );
}

/// The rules that nobody would miss.
async fn spare<K>(
    client: &Client,
    roles: &Api<K>,
    meant: &Rules,
    rules: &[PolicyRule],
    requests: &BTreeSet<Request>,
) -> Vec<String>
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let (mut spare, mut tried) = (Vec::new(), 0);
    for (index, rule) in rules.iter().enumerate() {
        let text = described(rule);
        if !(meant.are_meant)(&text) {
            continue;
        }
        tried += 1;
        let mut rest = rules.to_vec();
        rest.remove(index);
        set(roles, meant.role, &rest).await;
        if !is_missed(client, requests).await {
            spare.push(text);
        }
    }
    assert!(tried > 0, "no rule of {} is meant", meant.role);
    set(roles, meant.role, rules).await;
    spare
}

fn described(rule: &PolicyRule) -> String {
    let words = |list: &Option<Vec<String>>| list.clone().unwrap_or_default().join(",");
    format!(
        "{} {} {}",
        rule.verbs.join(","),
        words(&rule.resources),
        words(&rule.api_groups)
    )
}

async fn set<K>(roles: &Api<K>, name: &str, rules: &[PolicyRule])
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let patch = Patch::Merge(json!({"rules": rules}));
    roles
        .patch(name, &PatchParams::default(), &patch)
        .await
        .expect("the role changes");
}

/// Whether a request of the program is refused now, or soon.
async fn is_missed(client: &Client, requests: &BTreeSet<Request>) -> bool {
    let start = Instant::now();
    while start.elapsed() < NOTICE {
        for request in requests {
            if !is_allowed(client, request).await {
                return true;
            }
        }
    }
    false
}

async fn is_allowed(client: &Client, request: &Request) -> bool {
    let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    let review = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(USER.to_owned()),
            resource_attributes: Some(ResourceAttributes {
                verb: some(&request.verb),
                group: some(&request.group),
                resource: some(&request.resource),
                subresource: some(&request.subresource),
                namespace: some(&request.namespace),
                name: some(&request.name),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let reviews: Api<SubjectAccessReview> = Api::all(client.clone());
    let answer = reviews
        .create(&PostParams::default(), &review)
        .await
        .expect("a verdict");
    answer.status.is_some_and(|status| status.allowed)
}
