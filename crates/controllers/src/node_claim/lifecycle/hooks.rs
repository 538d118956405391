//! What the provider has to do to a node before it is registered.

use std::sync::Arc;

use api::v1::NodeClaim;
use futures::future::join_all;
use jiff::SignedDuration;
use kube::ResourceExt;
use model::{Labels, NodeName, ProviderId};
use provider::{Admission, ProviderError, Registering, RegistrationHook};

use crate::error::CloudError;

/// What all hooks said together.
#[derive(Debug, Default)]
pub struct Verdict {
    /// Labels for claim and node. Where two hooks give the same, the later in the provider's order wins.
    pub labels: Labels,
    /// Hooks that hold the registration up, in the provider's order.
    pub pending: Vec<String>,
    /// When the most impatient of them wants to be asked again.
    pub again: Option<SignedDuration>,
    /// The first that could not say.
    pub failure: Option<CloudError>,
}

/// Asks all hooks at once. One that cannot say holds the registration up as one that says no.
pub async fn ask(hooks: &[Arc<dyn RegistrationHook>], node: &Registering) -> Verdict {
    let answers = join_all(hooks.iter().map(|hook| hook.admit(node))).await;
    let mut verdict = Verdict::default();
    for (hook, answer) in hooks.iter().zip(answers) {
        verdict.hear(hook.name(), answer);
    }
    verdict
}

impl Verdict {
    fn hear(&mut self, hook: &str, answer: Result<Admission, ProviderError>) {
        match answer {
            Ok(Admission::Passed { labels }) => self.labels.extend(labels),
            Ok(Admission::Pending { labels, again }) => {
                self.labels.extend(labels);
                self.pending.push(hook.to_owned());
                self.again = Some(self.again.map_or(again, |sooner| sooner.min(again)));
            }
            Err(cause) => {
                self.pending.push(hook.to_owned());
                let action = "prepare a node for its registration";
                self.failure.get_or_insert(CloudError { action, cause });
            }
        }
    }
}

pub fn question(claim: &NodeClaim, instance: &str, node: &str) -> Registering {
    let model = |text: &std::collections::BTreeMap<String, String>| -> Labels {
        text.iter()
            .map(|(key, value)| (key.as_str().into(), value.as_str().into()))
            .collect()
    };
    Registering {
        claim: claim.name_any().into(),
        token: claim.uid().unwrap_or_default(),
        instance: ProviderId::from(instance),
        node: NodeName::from(node),
        labels: model(claim.labels()),
        annotations: model(claim.annotations()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use async_trait::async_trait;
    use tokio::time::{Instant, sleep};

    use super::*;

    /// Takes a second and then answers as it was told.
    struct Told(&'static str, fn() -> Result<Admission, ProviderError>);

    #[async_trait]
    impl RegistrationHook for Told {
        fn name(&self) -> &str {
            self.0
        }

        async fn admit(&self, _: &Registering) -> Result<Admission, ProviderError> {
            sleep(Duration::from_secs(1)).await;
            (self.1)()
        }
    }

    fn waits(secs: i64) -> Admission {
        Admission::pending(SignedDuration::from_secs(secs))
    }

    fn silent() -> ProviderError {
        ProviderError::Unavailable { cause: "silent".into() }
    }

    /// The verdict, and how many seconds it took.
    async fn verdict(hooks: Vec<Told>) -> (Verdict, u64) {
        let hooks: Vec<Arc<dyn RegistrationHook>> = hooks.into_iter().map(|hook| Arc::new(hook) as _).collect();
        let begun = Instant::now();
        let verdict = ask(&hooks, &question(&NodeClaim::default(), "kwok://a", "a")).await;
        (verdict, begun.elapsed().as_secs())
    }

    /// LC-G10: one passes, several pass, there is none.
    #[tokio::test(start_paused = true)]
    async fn nothing_is_held_up_where_all_pass() {
        let pass = |name| Told(name, || Ok(Admission::passed()));
        for hooks in [vec![], vec![pass("a")], vec![pass("a"), pass("b")]] {
            let (verdict, _) = verdict(hooks).await;
            assert!(verdict.pending.is_empty() && verdict.failure.is_none() && verdict.again.is_none());
        }
    }

    /// LC-G11, LC-G13: all are asked at once, all that wait are named, and the shortest wait counts.
    #[tokio::test(start_paused = true)]
    async fn every_hook_that_waits_is_named() {
        let hooks = vec![
            Told("slow", || Ok(waits(30))),
            Told("done", || Ok(Admission::passed())),
            Told("quick", || Ok(waits(5))),
        ];
        let (verdict, took) = verdict(hooks).await;
        assert_eq!(verdict.pending, ["slow", "quick"]);
        assert_eq!((verdict.again, took), (Some(SignedDuration::from_secs(5)), 1));
    }

    /// LC-G12.
    #[tokio::test(start_paused = true)]
    async fn a_hook_that_fails_is_named_and_its_failure_kept() {
        let (verdict, _) = verdict(vec![Told("broken", || Err(silent()))]).await;
        assert_eq!(verdict.pending, ["broken"]);
        assert!(matches!(
            verdict.failure,
            Some(CloudError {
                cause: ProviderError::Unavailable { .. },
                ..
            })
        ));
    }

    /// LC-G15.
    #[tokio::test(start_paused = true)]
    async fn labels_of_all_hooks_are_gathered() {
        fn labelled(key: &str, value: &str) -> Labels {
            [(key.into(), value.into())].into_iter().collect()
        }
        let hooks = vec![
            Told("first", || {
                Ok(Admission::Passed {
                    labels: labelled("rack", "r1"),
                })
            }),
            Told("second", || {
                let again = SignedDuration::from_secs(1);
                Ok(Admission::Pending {
                    labels: labelled("row", "7"),
                    again,
                })
            }),
        ];
        let (verdict, _) = verdict(hooks).await;
        let labels: Vec<String> = verdict
            .labels
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        assert_eq!(labels, ["rack=r1", "row=7"]);
    }
}
