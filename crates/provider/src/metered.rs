//! A decorator that reports how long each call took and how it ended.
//!
//! The report is data for an [`Observer`]; which metrics it becomes is decided where the metrics live.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use model::{NodeName, ProviderId, Vocabulary, node::NodeClassRef, pool::Pool, snapshot::Catalog};
use tokio::time::Instant;

use crate::{
    CloudProvider, Instance, LaunchRequest, Launched, NodeClassKind, Notice, ProviderError, Reason, RegistrationHook,
    RepairPolicy, Termination,
};

/// A call that is worth reporting. The others only hand over what is known already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    Launch,
    Terminate,
    Instance,
    Instances,
    Catalog,
    Drift,
}

impl Method {
    pub const ALL: [Method; 6] = [
        Method::Launch,
        Method::Terminate,
        Method::Instance,
        Method::Instances,
        Method::Catalog,
        Method::Drift,
    ];

    /// Upstream's name for it: the value of the metrics' label `method`, which dashboards know.
    pub fn label(self) -> &'static str {
        match self {
            Method::Launch => "Create",
            Method::Terminate => "Delete",
            Method::Instance => "Get",
            Method::Instances => "List",
            Method::Catalog => "GetInstanceTypes",
            Method::Drift => "IsDrifted",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// The cloud does not have the instance. An answer here, an error in upstream's metrics.
    NotFound,
    Failed(Reason),
}

impl Outcome {
    /// The value of upstream's metric label `error`, if upstream counts this as an error. Most errors have no name.
    pub fn error_label(&self) -> Option<&'static str> {
        match self {
            Outcome::Done => None,
            Outcome::NotFound | Outcome::Failed(Reason::Gone) => Some("NodeClaimNotFoundError"),
            Outcome::Failed(Reason::InsufficientCapacity) => Some("InsufficientCapacityError"),
            Outcome::Failed(Reason::NodeClassNotReady) => Some("NodeClassNotReadyError"),
            Outcome::Failed(Reason::LaunchFailed | Reason::Provider(_) | Reason::Unavailable) => Some(""),
        }
    }
}

/// One finished call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub provider: &'static str,
    pub controller: &'static str,
    pub method: Method,
    pub took: Duration,
    pub outcome: Outcome,
}

pub trait Observer: Send + Sync + 'static {
    fn observe(&self, call: Call);
}

/// A provider whose calls are reported. Calls that are dropped before they finish are not.
#[derive(Clone)]
pub struct Metered {
    inner: Arc<dyn CloudProvider>,
    observer: Arc<dyn Observer>,
    controller: &'static str,
}

impl Metered {
    /// `controller` is the name under which the calls are reported.
    pub fn new(inner: Arc<dyn CloudProvider>, observer: Arc<dyn Observer>, controller: &'static str) -> Self {
        Self {
            inner,
            observer,
            controller,
        }
    }

    /// The same provider with its calls reported for another controller.
    #[must_use]
    pub fn for_controller(&self, controller: &'static str) -> Self {
        Self {
            controller,
            ..self.clone()
        }
    }

    async fn timed<T>(
        &self,
        method: Method,
        call: impl Future<Output = Result<T, ProviderError>> + Send,
        is_not_found: impl FnOnce(&T) -> bool + Send,
    ) -> Result<T, ProviderError> {
        let started = Instant::now();
        let result = call.await;
        let outcome = match &result {
            Ok(answer) if is_not_found(answer) => Outcome::NotFound,
            Ok(_) => Outcome::Done,
            Err(error) => Outcome::Failed(error.reason()),
        };
        self.observer.observe(Call {
            provider: self.inner.name(),
            controller: self.controller,
            method,
            took: started.elapsed(),
            outcome,
        });
        result
    }
}

fn always_found<T>(_: &T) -> bool {
    false
}

#[async_trait]
impl CloudProvider for Metered {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn node_classes(&self) -> &[NodeClassKind] {
        self.inner.node_classes()
    }

    fn vocabulary(&self) -> Arc<Vocabulary> {
        self.inner.vocabulary()
    }

    async fn launch(&self, request: &LaunchRequest) -> Result<Launched, ProviderError> {
        self.timed(Method::Launch, self.inner.launch(request), always_found)
            .await
    }

    async fn terminate(&self, id: &ProviderId) -> Result<Termination, ProviderError> {
        let gone = |answer: &Termination| *answer == Termination::Gone;
        self.timed(Method::Terminate, self.inner.terminate(id), gone).await
    }

    async fn instance(&self, id: &ProviderId) -> Result<Option<Instance>, ProviderError> {
        self.timed(Method::Instance, self.inner.instance(id), Option::is_none)
            .await
    }

    async fn instances(&self) -> Result<Vec<Instance>, ProviderError> {
        self.timed(Method::Instances, self.inner.instances(), always_found)
            .await
    }

    async fn node_name(&self, id: &ProviderId) -> Result<Option<NodeName>, ProviderError> {
        self.inner.node_name(id).await
    }

    async fn catalog(&self, pool: &Pool) -> Result<Catalog, ProviderError> {
        self.timed(Method::Catalog, self.inner.catalog(pool), always_found)
            .await
    }

    async fn drift(&self, instance: &ProviderId, class: &NodeClassRef) -> Result<Option<String>, ProviderError> {
        self.timed(Method::Drift, self.inner.drift(instance, class), always_found)
            .await
    }

    async fn notices(&self) -> Result<Vec<Notice>, ProviderError> {
        self.inner.notices().await
    }

    async fn acknowledge(&self, notice: &Notice) -> Result<(), ProviderError> {
        self.inner.acknowledge(notice).await
    }

    fn repair_policies(&self) -> &[RepairPolicy] {
        self.inner.repair_policies()
    }

    fn registration_hooks(&self) -> &[Arc<dyn RegistrationHook>] {
        self.inner.registration_hooks()
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;

    /// Takes three seconds for everything and has nothing.
    struct Slow;

    async fn pause() {
        tokio::time::sleep(Duration::from_secs(3)).await;
    }

    #[async_trait]
    impl CloudProvider for Slow {
        fn name(&self) -> &'static str {
            "slow"
        }

        fn node_classes(&self) -> &[NodeClassKind] {
            &[]
        }

        fn vocabulary(&self) -> Arc<Vocabulary> {
            Arc::default()
        }

        async fn launch(&self, _: &LaunchRequest) -> Result<Launched, ProviderError> {
            pause().await;
            let details = "sold out".to_owned();
            Err(ProviderError::InsufficientCapacity { details })
        }

        async fn terminate(&self, _: &ProviderId) -> Result<Termination, ProviderError> {
            pause().await;
            Ok(Termination::Gone)
        }

        async fn instance(&self, _: &ProviderId) -> Result<Option<Instance>, ProviderError> {
            pause().await;
            Ok(None)
        }

        async fn instances(&self) -> Result<Vec<Instance>, ProviderError> {
            pause().await;
            Ok(Vec::new())
        }

        async fn catalog(&self, _: &Pool) -> Result<Catalog, ProviderError> {
            pause().await;
            Ok(Catalog::default())
        }

        async fn drift(&self, _: &ProviderId, _: &NodeClassRef) -> Result<Option<String>, ProviderError> {
            pause().await;
            let cause = "no route to host".into();
            Err(ProviderError::Unavailable { cause })
        }
    }

    #[derive(Default)]
    struct Book(Mutex<Vec<Call>>);

    impl Observer for Book {
        fn observe(&self, call: Call) {
            self.0.lock().push(call);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn every_call_is_reported_with_its_duration_and_outcome() {
        let book = Arc::new(Book::default());
        let metered = Metered::new(Arc::new(Slow), book.clone(), "lifecycle");
        let class = NodeClassRef {
            group: "g".into(),
            kind: "k".into(),
            name: "n".into(),
        };
        let id = ProviderId::from("x://1");
        metered.terminate(&id).await.expect("it is gone");
        metered.for_controller("gc").instance(&id).await.expect("an answer");
        metered.instances().await.expect("an empty list");
        metered.drift(&id, &class).await.expect_err("no answer");

        let calls = book.0.lock();
        let lines: Vec<String> = calls
            .iter()
            .map(|call| {
                let (method, error) = (call.method.label(), call.outcome.error_label());
                format!(
                    "{} {} {method} {:?} {error:?}",
                    call.provider, call.controller, call.took
                )
            })
            .collect();
        assert_eq!(
            lines,
            [
                r#"slow lifecycle Delete 3s Some("NodeClaimNotFoundError")"#,
                r#"slow gc Get 3s Some("NodeClaimNotFoundError")"#,
                "slow lifecycle List 3s None",
                r#"slow lifecycle IsDrifted 3s Some("")"#,
            ]
        );
    }

    #[test]
    fn the_errors_that_upstream_names_have_their_names() {
        let failed = |reason| Outcome::Failed(reason).error_label();
        assert_eq!(failed(Reason::InsufficientCapacity), Some("InsufficientCapacityError"));
        assert_eq!(failed(Reason::NodeClassNotReady), Some("NodeClassNotReadyError"));
        assert_eq!(failed(Reason::LaunchFailed), Some(""));
    }
}
