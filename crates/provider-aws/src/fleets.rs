//! Fleet requests of a wave, joined.
//!
//! Claims of one wave mostly ask for the same thing. One fleet of many instances costs one changing call where many fleets
//! of one instance would cost many.

use std::sync::Arc;

use api::hash::fnv1;

use crate::{
    batch::{Batcher, CREATE_FLEET, Gathered},
    error::AwsError,
    ports::{Ec2, FleetAnswer, FleetError, FleetInstances, FleetRequest},
};

type Answer = Result<FleetAnswer, AwsError>;

/// Sends fleet requests.
pub struct Fleets {
    ec2: Arc<dyn Ec2>,
    batcher: Batcher<FleetRequest, Answer>,
}

impl Fleets {
    pub fn new(ec2: Arc<dyn Ec2>) -> Self {
        Self {
            ec2,
            batcher: Batcher::new(CREATE_FLEET),
        }
    }

    /// Sends what is gathered. Without it, nothing is answered.
    pub async fn run(&self, observe: impl Fn(Gathered)) {
        let ec2 = self.ec2.clone();
        self.batcher
            .run(move |requests| create_all(ec2.clone(), requests), observe)
            .await;
    }

    /// The answer to a request for one instance. `None` when the program is stopping.
    pub async fn launch(&self, request: FleetRequest) -> Option<Answer> {
        debug_assert_eq!(request.count, 1, "batches count the instances");
        self.batcher.ask(contents(&request), request).await
    }
}

/// What two requests have to share to be one: all but who asks. The order of lists does not count.
fn contents(request: &FleetRequest) -> String {
    let mut request = request.clone();
    request.client_token = None;
    for group in &mut request.groups {
        group.overrides.sort_by_cached_key(|entry| format!("{entry:?}"));
    }
    request.groups.sort_by_cached_key(|group| format!("{group:?}"));
    format!("{request:?}")
}

/// Repeating the same requests for the same claims has the same token, and so launches nothing new.
fn token(requests: &[FleetRequest]) -> Option<String> {
    let mut tokens: Vec<&str> = requests
        .iter()
        .filter_map(|request| request.client_token.as_deref())
        .collect();
    tokens.sort_unstable();
    let first = requests.first()?;
    let text = format!("{} {}", tokens.join(" "), contents(first));
    (!tokens.is_empty()).then(|| format!("karpenter-{:016x}", fnv1(text.as_bytes())))
}

async fn create_all(ec2: Arc<dyn Ec2>, requests: Vec<FleetRequest>) -> Vec<Answer> {
    let Some(first) = requests.first() else {
        return Vec::new();
    };
    let joined = FleetRequest {
        count: u32::try_from(requests.len()).unwrap_or(u32::MAX),
        client_token: token(&requests),
        ..first.clone()
    };
    match ec2.create_fleet(&joined).await {
        Ok(answer) => share(answer, requests.len()).into_iter().map(Ok).collect(),
        Err(error) => vec![Err(error); requests.len()],
    }
}

/// One instance per caller, as far as they go; the rest gets the errors. Surplus instances are collected as unowned.
fn share(answer: FleetAnswer, callers: usize) -> Vec<FleetAnswer> {
    let single = |group: &FleetInstances, id: &String| FleetInstances {
        ids: vec![id.clone()],
        ..group.clone()
    };
    let instances = answer
        .instances
        .iter()
        .flat_map(|group| group.ids.iter().map(move |id| single(group, id)));
    let errors = match answer.errors.is_empty() {
        false => answer.errors.clone(),
        true => vec![FleetError {
            error: AwsError::new(
                "TooFewInstances",
                "EC2 launched fewer instances than asked for and did not say why",
            ),
            failed: None,
        }],
    };
    let mut shares: Vec<FleetAnswer> = instances
        .map(|group| FleetAnswer {
            instances: vec![group],
            errors: answer.errors.clone(),
        })
        .collect();
    shares.resize(
        callers,
        FleetAnswer {
            instances: Vec::new(),
            errors,
        },
    );
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ports::{Allocation, FleetGroup, FleetOverride, Market, Tags},
        testing::fake::FakeAws,
    };

    fn request(token: &str, template: &str, zones: &[&str]) -> FleetRequest {
        let entry = |zone: &&str| FleetOverride {
            instance_type: "m5.large".to_owned(),
            zone: Some((*zone).to_owned()),
            ..FleetOverride::default()
        };
        FleetRequest {
            dry_run: false,
            context: None,
            groups: vec![FleetGroup {
                template_name: template.to_owned(),
                version: None,
                overrides: zones.iter().map(entry).collect(),
            }],
            market: Market::OnDemand(Allocation::Price),
            client_token: Some(token.to_owned()),
            tags: Tags::new(),
            count: 1,
        }
    }

    fn fleets(aws: &FakeAws) -> Arc<Fleets> {
        let fleets = Arc::new(Fleets::new(aws.ports().ec2));
        let runner = fleets.clone();
        tokio::spawn(async move { runner.run(|_| ()).await });
        fleets
    }

    async fn launch_all(fleets: &Fleets, requests: Vec<FleetRequest>) -> Vec<Answer> {
        let asked = requests.into_iter().map(|request| fleets.launch(request));
        futures::future::join_all(asked)
            .await
            .into_iter()
            .map(Option::unwrap)
            .collect()
    }

    /// AW24.13.1
    #[tokio::test(start_paused = true)]
    async fn equal_requests_become_one_fleet() {
        let aws = FakeAws::new();
        let fleets = fleets(&aws);
        let answers = launch_all(
            &fleets,
            vec![
                request("t1", "one", &["a", "b"]),
                request("t2", "one", &["b", "a"]),
                request("t3", "two", &["a"]),
            ],
        )
        .await;
        let mut ids: Vec<String> = answers
            .iter()
            .flat_map(|answer| answer.as_ref().unwrap().instances[0].ids.clone())
            .collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 3, "everybody has an instance of their own");
        let counts: Vec<u32> = aws.fleets().iter().map(|fleet| fleet.count).collect();
        assert_eq!(counts, [2, 1]);
        let tokens: Vec<Option<String>> = aws.fleets().iter().map(|fleet| fleet.client_token.clone()).collect();
        assert!(tokens[0].is_some() && tokens[0] != tokens[1]);
        launch_all(
            &fleets,
            vec![request("t2", "one", &["a", "b"]), request("t1", "one", &["a", "b"])],
        )
        .await;
        assert_eq!(
            aws.fleets()[2].client_token,
            tokens[0],
            "the same claims again are the same request"
        );
    }

    /// AW24.13.1
    #[tokio::test(start_paused = true)]
    async fn who_gets_no_instance_gets_the_errors() {
        let aws = FakeAws::new();
        let fleets = fleets(&aws);
        let short = FleetError {
            error: AwsError::new("InsufficientInstanceCapacity", "x"),
            failed: None,
        };
        let three = FleetInstances {
            ids: ["i-1", "i-2", "i-3"].map(str::to_owned).to_vec(),
            ..FleetInstances::default()
        };
        let five = || {
            (0..5)
                .map(|index| request(&format!("t{index}"), "one", &["a"]))
                .collect::<Vec<_>>()
        };
        for errors in [vec![short], vec![]] {
            aws.answer_fleet(FleetAnswer {
                instances: vec![three.clone()],
                errors,
            });
            let answers = launch_all(&fleets, five()).await;
            let (with, without): (Vec<_>, Vec<_>) = answers
                .into_iter()
                .map(Result::unwrap)
                .partition(|answer| !answer.instances.is_empty());
            assert_eq!((with.len(), without.len()), (3, 2));
            assert!(without.iter().all(|answer| answer.errors.len() == 1));
        }
        aws.fail("CreateFleet", AwsError::new("RequestLimitExceeded", "x"));
        assert!(
            launch_all(&fleets, five()).await.iter().all(Result::is_err),
            "a failed call fails everybody"
        );
    }
}
