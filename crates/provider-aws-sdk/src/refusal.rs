//! What the SDK returns instead of an answer, in the provider's terms.

use std::error::Error;

use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_ec2::error::SdkError;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use aws_types::request_id::RequestId;
use provider_aws::error::AwsError;
use tracing::debug;

/// The code where there are no credentials to sign a request with: nothing was sent.
const NO_CREDENTIALS: &str = "NoCredentials";

/// EC2 models almost none of its errors, so code and message are read from the metadata that all services share.
///
/// The request's id goes to the log and not into the message: messages end up in conditions, which would otherwise change
/// with every attempt.
pub(crate) fn refused<E>(error: SdkError<E>) -> AwsError
where
    E: Error + ProvideErrorMetadata + Send + Sync + 'static,
{
    let refusal = match error.raw_response() {
        Some(raw) => answered(&error, raw),
        None => unanswered(&error),
    };
    debug!(
        call = call_of::<E>(),
        code = refusal.code,
        status = refusal.status,
        request_id = error.meta().request_id().or_else(|| error.request_id()),
        text = refusal.message,
        "AWS refused a request"
    );
    refusal
}

fn answered<E>(error: &SdkError<E>, raw: &HttpResponse) -> AwsError
where
    E: Error + ProvideErrorMetadata + Send + Sync + 'static,
{
    let status = raw.status().as_u16();
    let refusal = match error.code() {
        Some(code) => AwsError::new(code, error.message().unwrap_or_default()),
        // A proxy or a load balancer answered, or something that is not AWS at all.
        None => AwsError::new(&format!("HTTP {status}"), &chain(error)),
    };
    refusal.with_status(status)
}

fn unanswered<E>(error: &SdkError<E>) -> AwsError
where
    E: Error + Send + Sync + 'static,
{
    let mut link = error.source();
    while let Some(cause) = link {
        if cause.is::<CredentialsError>() {
            return AwsError::new(NO_CREDENTIALS, &chain(cause));
        }
        link = cause.source();
    }
    AwsError::no_answer(chain(error))
}

/// An error with its causes in one line, as there is no later reader who could walk the chain.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut link = error.source();
    while let Some(cause) = link {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        link = cause.source();
    }
    text
}

/// The call that the error type belongs to: `CreateFleetError` is CreateFleet's.
fn call_of<E>() -> &'static str {
    let path = std::any::type_name::<E>();
    let name = path.rsplit("::").next().unwrap_or(path);
    name.strip_suffix("Error").unwrap_or(name)
}

/// Where AWS answered without what was asked for.
pub(crate) fn incomplete(what: &str) -> AwsError {
    AwsError::new("IncompleteAnswer", &format!("the answer has no {what}"))
}
