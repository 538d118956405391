//! Which call of which service a request is.

use http::{HeaderMap, Method, StatusCode, Uri};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use super::query::Params;
use crate::refusal::Refusal;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Service {
    Ec2,
    Iam,
    Sts,
    Sqs,
    Ssm,
    Eks,
    Pricing,
    ZonalShift,
}

impl Service {
    /// As signatures and policies name it.
    pub fn name(self) -> &'static str {
        match self {
            Service::Ec2 => "ec2",
            Service::Iam => "iam",
            Service::Sts => "sts",
            Service::Sqs => "sqs",
            Service::Ssm => "ssm",
            Service::Eks => "eks",
            Service::Pricing => "pricing",
            Service::ZonalShift => "arc-zonal-shift",
        }
    }

    pub(super) fn namespace(self) -> &'static str {
        match self {
            Service::Iam => "https://iam.amazonaws.com/doc/2010-05-08/",
            Service::Sts => "https://sts.amazonaws.com/doc/2011-06-15/",
            Service::Sqs => "http://queue.amazonaws.com/doc/2012-11-05/",
            _ => "http://ec2.amazonaws.com/doc/2016-11-15/",
        }
    }

    /// Each service of the query protocol has a version of its own.
    fn of_version(version: &str) -> Option<Self> {
        match version {
            "2016-11-15" => Some(Service::Ec2),
            "2010-05-08" => Some(Service::Iam),
            "2011-06-15" => Some(Service::Sts),
            "2012-11-05" => Some(Service::Sqs),
            _ => None,
        }
    }

    fn of_target(target: &str) -> Option<Self> {
        match target {
            "AmazonSSM" => Some(Service::Ssm),
            "AmazonSQS" => Some(Service::Sqs),
            "AWSPriceListService" => Some(Service::Pricing),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Parameters {
    Form(Params),
    Json(Value),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub service: Service,
    pub action: String,
    pub parameters: Parameters,
    /// Who signed; nobody for requests without a signature, which are taken all the same.
    pub access_key: Option<String>,
    /// Which attempt of the client's SDK this is.
    pub attempt: u32,
    /// Where the request was sent to, for answers that name a place to send others to.
    pub host: Option<String>,
}

impl Call {
    pub fn parse(method: &Method, uri: &Uri, headers: &HeaderMap, body: &[u8]) -> Result<Self, Refusal> {
        let header = |name: &str| {
            headers
                .get(name)
                .and_then(|value| value.to_str().ok())
                .unwrap_or_default()
        };
        let (service, action, parameters) = named(method, uri, header("x-amz-target"), body)?;
        let credential = header("authorization").split_once("Credential=").map(|(_, rest)| rest);
        let access_key = credential.and_then(|text| text.split('/').next()).map(str::to_owned);
        let attempt = header("amz-sdk-request")
            .split(';')
            .find_map(|part| part.trim().strip_prefix("attempt="));
        Ok(Self {
            service,
            action,
            parameters,
            access_key,
            attempt: attempt.and_then(|number| number.parse().ok()).unwrap_or(1),
            host: Some(header("host")).filter(|host| !host.is_empty()).map(str::to_owned),
        })
    }

    /// As recordings show them.
    pub fn shown(&self) -> Value {
        match &self.parameters {
            Parameters::Form(params) => params.to_json(),
            Parameters::Json(value) => value.clone(),
        }
    }
}

fn named(method: &Method, uri: &Uri, target: &str, body: &[u8]) -> Result<(Service, String, Parameters), Refusal> {
    if let Some((prefix, action)) = target.split_once('.') {
        let version_free = prefix.split('_').next().unwrap_or(prefix);
        let service = Service::of_target(version_free).ok_or_else(|| unknown(target))?;
        let value = if body.is_empty() {
            Ok(json!({}))
        } else {
            serde_json::from_slice(body)
        };
        let malformed = |_| Refusal::new("SerializationException", "The request is not valid JSON");
        return Ok((service, action.to_owned(), Parameters::Json(value.map_err(malformed)?)));
    }
    if let Some((service, action, value)) = rest(method, uri) {
        return Ok((service, action.to_owned(), Parameters::Json(value)));
    }
    let query = uri.query().unwrap_or_default().as_bytes();
    let params = Params::parse(if body.is_empty() { query } else { body });
    let action = params
        .text("Action")
        .ok_or_else(|| unknown(&format!("{method} {uri}")))?
        .to_owned();
    let version = params.text("Version").unwrap_or_default();
    let service = Service::of_version(version).ok_or_else(|| unknown(&format!("{action} of version '{version}'")))?;
    Ok((service, action, Parameters::Form(params)))
}

/// The calls of REST services lie in method and path.
fn rest(method: &Method, uri: &Uri) -> Option<(Service, &'static str, Value)> {
    if method != Method::GET {
        return None;
    }
    let mut parts = uri.path().strip_prefix('/')?.split('/');
    let names = ["clusters", "managedresources"];
    let (kind, first) = (parts.next().filter(|kind| names.contains(kind))?, parts.next()?);
    let (service, action, parameters) = match (kind, parts.next(), parts.next()) {
        ("clusters", None, None) => (Service::Eks, "DescribeCluster", vec![("name", first)]),
        ("clusters", Some("access-entries"), None) => (Service::Eks, "ListAccessEntries", vec![("clusterName", first)]),
        ("clusters", Some("access-entries"), Some(principal)) => {
            let parameters = vec![("clusterName", first), ("principalArn", principal)];
            (Service::Eks, "DescribeAccessEntry", parameters)
        }
        ("managedresources", None, None) => (
            Service::ZonalShift,
            "GetManagedResource",
            vec![("resourceIdentifier", first)],
        ),
        _ => return None,
    };
    let decoded = |text: &str| Value::String(percent_decode_str(text).decode_utf8_lossy().into_owned());
    let parameters = parameters
        .into_iter()
        .map(|(name, text)| (name.to_owned(), decoded(text)));
    Some((service, action, Value::Object(parameters.collect())))
}

fn unknown(what: &str) -> Refusal {
    let message = format!("aws-fake does not serve {what}");
    Refusal::new("UnknownOperationException", message).with_status(StatusCode::NOT_FOUND)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(method: &str, uri: &str, headers: &[(&'static str, &str)], body: &str) -> Result<Call, Refusal> {
        let headers = headers.iter().map(|(name, value)| {
            let name = http::HeaderName::from_static(name);
            (name, value.parse().expect("a header"))
        });
        let method: Method = method.parse().expect("a method");
        Call::parse(
            &method,
            &uri.parse().expect("a URI"),
            &headers.collect(),
            body.as_bytes(),
        )
    }

    #[test]
    fn every_protocol_says_its_call_in_its_own_way() {
        let table = [
            (
                "POST",
                "/",
                "",
                "Action=DescribeSubnets&Version=2016-11-15",
                Service::Ec2,
                "DescribeSubnets",
            ),
            (
                "POST",
                "/",
                "",
                "Action=GetRole&Version=2010-05-08",
                Service::Iam,
                "GetRole",
            ),
            (
                "POST",
                "/",
                "AmazonSSM.GetParameter",
                "{}",
                Service::Ssm,
                "GetParameter",
            ),
            (
                "POST",
                "/",
                "AWSPriceListService.GetProducts",
                "{}",
                Service::Pricing,
                "GetProducts",
            ),
            (
                "POST",
                "/",
                "AmazonSQS.ReceiveMessage",
                "",
                Service::Sqs,
                "ReceiveMessage",
            ),
            (
                "POST",
                "/1/demo",
                "",
                "Action=ReceiveMessage&Version=2012-11-05",
                Service::Sqs,
                "ReceiveMessage",
            ),
            ("GET", "/clusters/demo", "", "", Service::Eks, "DescribeCluster"),
            (
                "GET",
                "/clusters/demo/access-entries?maxResults=100",
                "",
                "",
                Service::Eks,
                "ListAccessEntries",
            ),
            (
                "GET",
                "/clusters/demo/access-entries/arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fnodes",
                "",
                "",
                Service::Eks,
                "DescribeAccessEntry",
            ),
            (
                "GET",
                "/managedresources/arn%3Aaws",
                "",
                "",
                Service::ZonalShift,
                "GetManagedResource",
            ),
        ];
        for (method, uri, target, body, service, action) in table {
            let headers: &[_] = if target.is_empty() {
                &[]
            } else {
                &[("x-amz-target", target)]
            };
            let found = call(method, uri, headers, body).expect("a call");
            assert_eq!(
                (found.service, found.action.as_str()),
                (service, action),
                "{uri} {target} {body}"
            );
        }
    }

    #[test]
    fn signatures_tell_who_asks_and_the_sdk_how_often() {
        let signature = "AWS4-HMAC-SHA256 Credential=AKID/20261116/us-west-2/ec2/aws4_request, SignedHeaders=host";
        let headers = [("authorization", signature), ("amz-sdk-request", "attempt=2; max=3")];
        let found = call("POST", "/", &headers, "Action=DescribeSubnets&Version=2016-11-15").expect("a call");
        assert_eq!((found.access_key.as_deref(), found.attempt), (Some("AKID"), 2));
    }

    #[test]
    fn what_no_service_has_is_refused() {
        for (method, uri) in [("GET", "/"), ("DELETE", "/clusters/demo")] {
            assert_eq!(
                call(method, uri, &[], "").expect_err("no call").code,
                "UnknownOperationException"
            );
        }
        let other = call("POST", "/", &[], "Action=ListBuckets&Version=1999-01-01").expect_err("no service");
        assert!(other.message.contains("ListBuckets"), "{other}");
    }
}
