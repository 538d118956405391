//! AWS's protocols: which call a request is, and how its answer or its refusal is written.
//!
//! EC2, IAM and STS speak query and XML; SQS, Systems Manager and the price list JSON with the action in a header (SQS also
//! the query protocol); EKS and the zonal shift REST. One file per service has its calls.

pub mod ec2;
pub mod eks;
pub mod iam;
pub mod pricing;
pub mod query;
pub mod request;
pub mod sqs;
pub mod ssm;
pub mod sts;
pub mod xml;
pub mod zonal_shift;

use http::StatusCode;
use jiff::Timestamp;
use serde_json::{Value, json};

pub use self::request::{Call, Parameters, Service};
use self::{query::Params, xml::Xml};
use crate::{refusal::Refusal, region::Region};

/// What came of a call, before it is written in the form of its service.
#[derive(Debug)]
pub enum Reply {
    /// The inside of an answer in XML.
    Xml(Xml),
    Json(Value),
    /// Nothing yet; ask again no later than that.
    Wait(Timestamp),
}

/// An answer as it goes over the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: StatusCode,
    pub content_type: &'static str,
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
}

/// Carries out a call.
pub fn carry_out(region: &mut Region, call: &Call, now: Timestamp) -> Result<Reply, Refusal> {
    let unknown = || {
        let message = format!("The action {} is not valid for this web service.", call.action);
        Refusal::new("InvalidAction", message)
    };
    let reply = match (call.service, &call.parameters) {
        (Service::Ec2, Parameters::Form(params)) => ec2::carry_out(region, &call.action, params, now)?,
        (Service::Iam, Parameters::Form(params)) => iam::carry_out(region, &call.action, params, now)?,
        (Service::Sts, Parameters::Form(params)) => sts::carry_out(region, &call.action, params, now)?,
        (Service::Sqs, parameters) => sqs::carry_out(region, call, parameters, now)?,
        (Service::Ssm, Parameters::Json(params)) => ssm::carry_out(region, &call.action, params)?,
        (Service::Pricing, Parameters::Json(params)) => pricing::carry_out(region, &call.action, params)?,
        (Service::Eks, Parameters::Json(params)) => eks::carry_out(region, &call.action, params)?,
        (Service::ZonalShift, Parameters::Json(params)) => zonal_shift::carry_out(region, &call.action, params)?,
        _ => None,
    };
    reply.ok_or_else(unknown)
}

/// A successful answer in the form of its service. `Reply::Wait` has none.
pub fn written(call: &Call, reply: Reply, request_id: &str) -> Answer {
    let (content_type, body) = match reply {
        Reply::Xml(inside) => (
            "text/xml;charset=UTF-8",
            enveloped(call, &inside.into_text(), request_id),
        ),
        Reply::Json(value) => (json_type(call.service), value.to_string()),
        Reply::Wait(_) => (json_type(call.service), "{}".to_owned()),
    };
    Answer {
        status: StatusCode::OK,
        content_type,
        headers: vec![("x-amzn-requestid", request_id.to_owned())],
        body,
    }
}

fn enveloped(call: &Call, inside: &str, request_id: &str) -> String {
    let (action, namespace) = (&call.action, call.service.namespace());
    match call.service {
        Service::Ec2 => format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<{action}Response xmlns=\"{namespace}\">\
             <requestId>{request_id}</requestId>{inside}</{action}Response>"
        ),
        _ => format!(
            "<{action}Response xmlns=\"{namespace}\"><{action}Result>{inside}</{action}Result>\
             <ResponseMetadata><RequestId>{request_id}</RequestId></ResponseMetadata></{action}Response>"
        ),
    }
}

fn json_type(service: Service) -> &'static str {
    match service {
        Service::Sqs => "application/x-amz-json-1.0",
        Service::Eks | Service::ZonalShift => "application/json",
        _ => "application/x-amz-json-1.1",
    }
}

/// A refusal in the form of its service.
pub fn refused(call: &Call, refusal: &Refusal, request_id: &str) -> Answer {
    let mut headers = vec![("x-amzn-requestid", request_id.to_owned())];
    let code = &refusal.code;
    let mut xml = Xml::default();
    let (content_type, body) = match (call.service, &call.parameters) {
        (Service::Ec2, _) => {
            xml.node("Response", |xml| {
                xml.node("Errors", |xml| {
                    xml.node("Error", |xml| {
                        xml.leaf("Code", code);
                        xml.leaf("Message", &refusal.message);
                    });
                });
                xml.leaf("RequestID", request_id);
            });
            ("text/xml;charset=UTF-8", xml.into_text())
        }
        (Service::Iam | Service::Sts, _) | (Service::Sqs, Parameters::Form(_)) => {
            let fault = if refusal.status.is_server_error() {
                "Receiver"
            } else {
                "Sender"
            };
            xml.node("ErrorResponse", |xml| {
                xml.node("Error", |xml| {
                    xml.leaf("Type", fault);
                    xml.leaf("Code", sqs::query_code(call.service, code));
                    xml.leaf("Message", &refusal.message);
                });
                xml.leaf("RequestId", request_id);
            });
            let body = xml.into_text().replacen(
                "<ErrorResponse>",
                &format!("<ErrorResponse xmlns=\"{}\">", call.service.namespace()),
                1,
            );
            ("text/xml", body)
        }
        (Service::Eks | Service::ZonalShift, _) => {
            headers.push(("x-amzn-errortype", code.clone()));
            let body = json!({"__type": code, "message": refusal.message});
            (json_type(call.service), body.to_string())
        }
        (Service::Sqs, Parameters::Json(_)) => {
            // Clients of the older protocol know the errors by other names; AWS tells both.
            let old = sqs::query_code(call.service, code);
            headers.push(("x-amzn-query-error", format!("{old};Sender")));
            let body = json!({"__type": format!("com.amazonaws.sqs#{code}"), "message": refusal.message});
            (json_type(call.service), body.to_string())
        }
        (Service::Ssm | Service::Pricing, _) => {
            let body = json!({"__type": code, "message": refusal.message});
            (json_type(call.service), body.to_string())
        }
    };
    Answer {
        status: refusal.status,
        content_type,
        headers,
        body,
    }
}

/// A text field of a JSON call.
pub(crate) fn text<'a>(params: &'a Value, name: &str) -> Result<&'a str, Refusal> {
    params[name].as_str().ok_or_else(|| {
        let message = format!(
            "1 validation error detected: Value at '{name}' failed to satisfy constraint: Member must not be null"
        );
        Refusal::new("ValidationException", message)
    })
}

/// One page of a listing and what leads to the next.
pub(crate) fn page<T>(
    mut items: Vec<T>,
    token: Option<&str>,
    size: usize,
) -> Result<(Vec<T>, Option<String>), Refusal> {
    let bad = || Refusal::new("InvalidNextToken", "The token is not valid");
    let start: usize = match token {
        None | Some("") => 0,
        Some(token) => token
            .strip_prefix("from-")
            .and_then(|number| number.parse().ok())
            .ok_or_else(bad)?,
    };
    if start > items.len() {
        return Err(bad());
    }
    let mut rest = items.split_off(start);
    let next = (rest.len() > size).then(|| format!("from-{}", start + size));
    rest.truncate(size);
    Ok((rest, next))
}

/// Pages of a query call; without a size everything comes at once.
pub(crate) fn query_page<T>(items: Vec<T>, params: &Params) -> Result<(Vec<T>, Option<String>), Refusal> {
    let size = params.number::<usize>("MaxResults")?;
    page(items, params.text("NextToken"), size.unwrap_or(usize::MAX))
}

/// A time as EC2 writes it.
pub(crate) fn time(moment: Timestamp) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%S.000Z").to_string()
}

/// A time as the JSON services write it.
pub(crate) fn epoch(moment: Timestamp) -> Value {
    json!(moment.as_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_each_other_to_the_end() {
        let items: Vec<u8> = (0..5).collect();
        let (first, token) = page(items.clone(), None, 2).expect("a page");
        assert_eq!((first, token.as_deref()), (vec![0, 1], Some("from-2")));
        let (last, token) = page(items.clone(), Some("from-4"), 2).expect("a page");
        assert_eq!((last, token), (vec![4], None));
        assert_eq!(
            page(items, Some("nonsense"), 2).expect_err("no token of ours").code,
            "InvalidNextToken"
        );
    }
}
