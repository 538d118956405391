//! What every call has in common: who asks, and the count of it under the names that upstream's dashboards know.

use std::{fmt, sync::Arc};

use aws_smithy_runtime_api::{
    box_error::BoxError,
    client::{
        interceptors::{
            Intercept,
            context::{
                BeforeSerializationInterceptorContextRef, BeforeTransmitInterceptorContextMut,
                BeforeTransmitInterceptorContextRef, FinalizerInterceptorContextRef,
            },
        },
        orchestrator::Metadata,
        runtime_components::RuntimeComponents,
    },
};
use aws_smithy_types::config_bag::{ConfigBag, Storable, StoreReplace};
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::Registry,
};
use tokio::time::Instant;

const USER_AGENT: &str = "user-agent";

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Call {
    action: String,
    /// The HTTP status; 0 where nothing answered.
    code: String,
    service: String,
}

type Histograms = Family<Call, Histogram, fn() -> Histogram>;

/// Seconds: ten milliseconds to twenty seconds, half as much again each.
fn durations() -> Histogram {
    Histogram::new((0..20).map(|n| 0.01 * 1.5_f64.powi(n)))
}

fn retries() -> Histogram {
    Histogram::new((0..=10).map(f64::from))
}

/// Names us in each request, and counts requests and attempts.
#[derive(Clone)]
pub struct Calls(Arc<Counts>);

struct Counts {
    product: String,
    calls: Family<Call, Counter>,
    attempts: Family<Call, Counter>,
    call_seconds: Histograms,
    attempt_seconds: Histograms,
    retries: Histograms,
    registry: Registry,
}

impl fmt::Debug for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Calls").field(&self.0.product).finish()
    }
}

impl Calls {
    /// `None` when the version cannot be part of a header.
    pub(crate) fn new(version: &str) -> Option<Self> {
        let is_token = |letter: char| letter.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(letter);
        if !version.chars().all(is_token) {
            return None;
        }
        let calls = Family::<Call, Counter>::default();
        let attempts = Family::<Call, Counter>::default();
        let call_seconds = Histograms::new_with_constructor(durations);
        let attempt_seconds = Histograms::new_with_constructor(durations);
        let retry_counts = Histograms::new_with_constructor(retries);
        let mut registry = Registry::default();
        registry.register("aws_sdk_go_request", "Calls to AWS", calls.clone());
        registry.register(
            "aws_sdk_go_request_attempt",
            "Attempts at calls to AWS, repetitions included",
            attempts.clone(),
        );
        registry.register(
            "aws_sdk_go_request_duration_seconds",
            "How long calls to AWS take with all their attempts",
            call_seconds.clone(),
        );
        registry.register(
            "aws_sdk_go_request_attempt_duration_seconds",
            "How long single attempts at calls to AWS take",
            attempt_seconds.clone(),
        );
        registry.register(
            "aws_sdk_go_request_retry_count",
            "How often calls to AWS are repeated",
            retry_counts.clone(),
        );
        Some(Self(Arc::new(Counts {
            product: format!("karpenter.sh-{version}"),
            calls,
            attempts,
            call_seconds,
            attempt_seconds,
            retries: retry_counts,
            registry,
        })))
    }

    /// The families, as a registry encodes them.
    pub fn encoded(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.0.registry).expect("writing to a string succeeds");
        text
    }
}

/// When a call and its present attempt began, and which attempt it is.
#[derive(Clone, Copy, Debug)]
struct Progress {
    call: Instant,
    attempt: Instant,
    attempts: u32,
}

impl Storable for Progress {
    type Storer = StoreReplace<Self>;
}

fn call_of(context: &FinalizerInterceptorContextRef<'_>, bag: &ConfigBag) -> Option<Call> {
    let metadata = bag.load::<Metadata>()?;
    Some(Call {
        action: metadata.name().to_owned(),
        code: context
            .response()
            .map_or(0, |response| response.status().as_u16())
            .to_string(),
        service: metadata.service().to_owned(),
    })
}

impl Intercept for Calls {
    fn name(&self) -> &'static str {
        "Calls"
    }

    fn read_before_execution(
        &self,
        _: &BeforeSerializationInterceptorContextRef<'_>,
        bag: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let now = Instant::now();
        bag.interceptor_state().store_put(Progress {
            call: now,
            attempt: now,
            attempts: 0,
        });
        Ok(())
    }

    fn read_before_attempt(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        bag: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if let Some(progress) = bag.load::<Progress>().copied() {
            bag.interceptor_state().store_put(Progress {
                attempt: Instant::now(),
                attempts: progress.attempts + 1,
                ..progress
            });
        }
        Ok(())
    }

    /// After the signature, which does not cover this header.
    fn modify_before_transmit(
        &self,
        context: &mut BeforeTransmitInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let headers = context.request_mut().headers_mut();
        let agent = match headers.get(USER_AGENT) {
            Some(agent) => format!("{agent} {}", self.0.product),
            None => self.0.product.clone(),
        };
        headers.try_insert(USER_AGENT, agent)?;
        Ok(())
    }

    fn read_after_attempt(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        bag: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if let (Some(call), Some(progress)) = (call_of(context, bag), bag.load::<Progress>()) {
            self.0.attempts.get_or_create(&call).inc();
            let seconds = progress.attempt.elapsed().as_secs_f64();
            self.0.attempt_seconds.get_or_create(&call).observe(seconds);
        }
        Ok(())
    }

    fn read_after_execution(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        bag: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if let (Some(call), Some(progress)) = (call_of(context, bag), bag.load::<Progress>()) {
            self.0.calls.get_or_create(&call).inc();
            let seconds = progress.call.elapsed().as_secs_f64();
            self.0.call_seconds.get_or_create(&call).observe(seconds);
            let retries = progress.attempts.saturating_sub(1);
            self.0.retries.get_or_create(&call).observe(f64::from(retries));
        }
        Ok(())
    }
}
