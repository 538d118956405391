//! How requests travel: TLS, proxies, and how long an answer is waited for.

use std::time::Duration;

use aws_smithy_http_client::{
    Builder, Connector,
    proxy::ProxyConfig,
    tls::{Provider, rustls_provider::CryptoMode},
};
use aws_smithy_runtime_api::client::{http::SharedHttpClient, runtime_components::RuntimeComponents};
use aws_smithy_types::timeout::TimeoutConfig;

/// An HTTP client on the TLS library that the rest of the program uses. Proxies are taken from the environment.
pub fn client() -> SharedHttpClient {
    Builder::new().build_with_connector_fn(|settings, components| {
        let mut connector = Connector::builder().proxy_config(ProxyConfig::from_env());
        connector.set_connector_settings(settings.cloned());
        connector.set_sleep_impl(components.and_then(RuntimeComponents::sleep_impl));
        connector.tls_provider(Provider::Rustls(CryptoMode::Ring)).build()
    })
}

/// How long to wait, so that an endpoint that hangs holds up nothing but its own calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    pub connect: Duration,
    /// One attempt. The queue alone makes us wait on purpose, for 20 s.
    pub attempt: Duration,
    /// A call with all its attempts and the pauses between them.
    pub call: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            attempt: Duration::from_secs(60),
            // Upstream's limit for a request.
            call: Duration::from_secs(4 * 60),
        }
    }
}

impl Patience {
    pub(crate) fn config(self) -> TimeoutConfig {
        TimeoutConfig::builder()
            .connect_timeout(self.connect)
            .operation_attempt_timeout(self.attempt)
            .operation_timeout(self.call)
            .build()
    }
}
