//! AWS as a function of this process, for simulations: no socket, so that nothing waits on real time.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::{Credentials, provider::SharedCredentialsProvider};
use aws_smithy_async::{rt::sleep::TokioSleep, time::SystemTimeSource};
use aws_smithy_runtime_api::client::{
    http::{HttpConnector, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector, http_client_fn},
    orchestrator::{HttpRequest, HttpResponse},
    result::ConnectorError,
};
use aws_smithy_types::body::SdkBody;
use http::{Request, Response};

use crate::{ConnectError, Connected, Connection, over};

type Answered = Pin<Box<dyn Future<Output = Response<String>> + Send>>;

/// Whoever answers instead of AWS.
#[derive(Clone)]
struct InProcess(Arc<dyn Fn(Request<Vec<u8>>) -> Answered + Send + Sync>);

impl fmt::Debug for InProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InProcess")
    }
}

impl HttpConnector for InProcess {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let own = self.clone();
        HttpConnectorFuture::new(async move {
            let request = request.try_into_http1x();
            let request = request.map_err(|error| ConnectorError::user(error.into()))?;
            let request = request.map(|body| body.bytes().unwrap_or_default().to_vec());
            let answer = (own.0)(request).await.map(SdkBody::from);
            HttpResponse::try_from(answer).map_err(|error| ConnectorError::other(error.into(), None))
        })
    }
}

/// AWS in this region, as `answer` has it. Any credentials would do, so that none are looked for.
pub fn in_process<A>(
    region: &str,
    connection: &Connection,
    answer: impl Fn(Request<Vec<u8>>) -> A + Send + Sync + 'static,
) -> Result<Connected, ConnectError>
where
    A: Future<Output = Response<String>> + Send + 'static,
{
    let connector = InProcess(Arc::new(move |request| Box::pin(answer(request))));
    let client: SharedHttpClient = http_client_fn(move |_, _| SharedHttpConnector::new(connector.clone()));
    let credentials = Credentials::new("any", "any", None, None, "in process");
    let config = SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new(region.to_owned()))
        .endpoint_url("http://aws.in-process.invalid")
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .http_client(client)
        .sleep_impl(TokioSleep::new())
        .time_source(SystemTimeSource::new())
        .build();
    over(&config, connection)
}
