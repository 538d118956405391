//! Which question is asked, and the envelope of its answer.

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{Pools, Rules, conversion, object};

/// Where each question is asked. Groups share their answers: an object says itself what it is.
pub const PATHS: [&str; 7] = [
    "/default/karpenter.sh",
    "/default/karpenter.k8s.aws",
    "/validate/karpenter.sh",
    "/validate/karpenter.k8s.aws",
    "/validate/config.karpenter.sh",
    "/conversion/karpenter.sh",
    "/conversion/karpenter.k8s.aws",
];

const ADMISSION: (&str, &str) = ("admission.k8s.io/v1", "AdmissionReview");
const CONVERSION: (&str, &str) = ("apiextensions.k8s.io/v1", "ConversionReview");

/// Why a request is no review.
#[derive(Debug, thiserror::Error)]
pub enum Malformed {
    #[error("nothing is answered at {path}")]
    Path { path: String },
    #[error("the body is not the JSON of a review: {cause}")]
    Json { cause: serde_json::Error },
    #[error("{found:?} is asked for here; only {wanted:?} is answered")]
    Kind { found: String, wanted: String },
    #[error("the review has no request")]
    Empty,
}

/// A question.
#[derive(Debug)]
pub enum Review {
    Default(Admission),
    Validate(Admission),
    Convert(Conversion),
}

/// An object that is about to be written.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Admission {
    pub uid: String,
    /// Absent where an object is deleted.
    pub object: Option<Value>,
    /// What is there, where an object is changed.
    pub old_object: Option<Value>,
}

/// Objects that are wanted in another version.
#[derive(Debug, Deserialize)]
pub struct Conversion {
    pub uid: String,
    #[serde(rename = "desiredAPIVersion")]
    pub desired: String,
    #[serde(default)]
    pub objects: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<T> {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    request: Option<T>,
}

impl Review {
    /// Reads the question that was sent to a path.
    pub fn read(path: &str, body: &[u8]) -> Result<Self, Malformed> {
        let question = PATHS.contains(&path).then(|| path.split('/').nth(1)).flatten();
        match question {
            Some("default") => Ok(Self::Default(request(body, ADMISSION)?)),
            Some("validate") => Ok(Self::Validate(request(body, ADMISSION)?)),
            Some("conversion") => Ok(Self::Convert(request(body, CONVERSION)?)),
            _ => Err(Malformed::Path { path: path.to_owned() }),
        }
    }

    /// The names of the pools that the answer depends on.
    pub fn pools(&self) -> Vec<String> {
        match self {
            Self::Default(_) | Self::Validate(_) => Vec::new(),
            Self::Convert(asked) => conversion::pools(asked),
        }
    }

    pub fn answer(&self, rules: &Rules, pools: &Pools) -> Value {
        let ((version, kind), response) = match self {
            Self::Default(asked) => (ADMISSION, object::defaulted(asked, rules)),
            Self::Validate(asked) => (ADMISSION, object::validated(asked, rules)),
            Self::Convert(asked) => (CONVERSION, conversion::converted(asked, pools)),
        };
        json!({ "apiVersion": version, "kind": kind, "response": response })
    }
}

fn request<T: DeserializeOwned>(body: &[u8], (version, kind): (&str, &str)) -> Result<T, Malformed> {
    let envelope: Envelope<Value> = serde_json::from_slice(body).map_err(|cause| Malformed::Json { cause })?;
    if (envelope.api_version.as_str(), envelope.kind.as_str()) != (version, kind) {
        return Err(Malformed::Kind {
            found: format!("{} {}", envelope.api_version, envelope.kind),
            wanted: format!("{version} {kind}"),
        });
    }
    let request = envelope.request.ok_or(Malformed::Empty)?;
    serde_json::from_value(request).map_err(|cause| Malformed::Json { cause })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, body: &str, expected: &str) {
        let refused = Review::read(path, body.as_bytes()).expect_err("no review");
        assert_eq!(refused.to_string(), expected);
    }

    #[test]
    fn what_is_no_review_is_told_so() {
        let path = "/validate/karpenter.sh";
        check(
            path,
            "{",
            "the body is not the JSON of a review: EOF while parsing an object at line 1 column 1",
        );
        check(
            path,
            "{}",
            r#"" " is asked for here; only "admission.k8s.io/v1 AdmissionReview" is answered"#,
        );
        check(
            path,
            r#"{"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview", "request": {"uid": "1"}}"#,
            r#""admission.k8s.io/v1beta1 AdmissionReview" is asked for here; only "admission.k8s.io/v1 AdmissionReview" is answered"#,
        );
        check(
            path,
            r#"{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}"#,
            "the review has no request",
        );
        check(
            path,
            r#"{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {}}"#,
            "the body is not the JSON of a review: missing field `uid`",
        );
        check(
            "/conversion/karpenter.sh",
            r#"{"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": {"uid": "1"}}"#,
            "the body is not the JSON of a review: missing field `desiredAPIVersion`",
        );
        check("/validate/other", "{}", "nothing is answered at /validate/other");
        check("/", "{}", "nothing is answered at /");
    }
}
