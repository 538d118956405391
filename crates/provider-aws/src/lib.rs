//! EC2 behind the provider trait; the only crate that builds the AWS SDK.
