//! Stories: sequences of requests made from a seed.

use std::fmt;

use http::Method;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use super::answer::Answer;
use super::objects::{KINDS, Kind, labels, pick, rarely, status};

const JSON: &str = "application/json";

/// A request to both servers.
pub struct Step {
    pub method: Method,
    pub path: String,
    pub content_type: &'static str,
    pub body: Body,
}

type Change = Box<dyn Fn(&mut Value) + Send + Sync>;

pub enum Body {
    None,
    Json(Value),
    Raw(String),
    /// What the server has at a path, or something else if it has nothing there, changed.
    Changed {
        path: String,
        otherwise: Value,
        change: Change,
    },
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.method, self.path, self.content_type)?;
        match &self.body {
            Body::None => Ok(()),
            Body::Json(value) => write!(f, "\n{value}"),
            Body::Raw(text) => write!(f, "\n{text}"),
            Body::Changed { path, .. } => write!(f, "\n(the object at {path}, changed)"),
        }
    }
}

/// Makes the steps of one seed. It follows what exists, so that most steps hit something.
pub struct Story {
    rng: StdRng,
    seed: u64,
    pub namespace: String,
    /// Paths of objects that were created and not seen to be gone.
    existing: Vec<(usize, String)>,
}

impl Story {
    pub fn new(seed: u64) -> Story {
        Story {
            rng: StdRng::seed_from_u64(seed),
            seed,
            namespace: format!("story-{seed}"),
            existing: Vec::new(),
        }
    }

    /// Remembers what a step made or removed.
    pub fn learn(&mut self, step: &Step, answer: &Answer) {
        let made = answer.code == 201 && step.method == Method::POST && !step.path.contains('?');
        if made && let Some(at) = KINDS.iter().position(|kind| self.collection(kind) == step.path) {
            let name = answer.body["metadata"]["name"]
                .as_str()
                .unwrap_or_default()
                .replace(' ', "%20");
            self.existing.push((at, format!("{}/{name}", step.path)));
        }
        if answer.code == 404 {
            let gone = step.path.split('?').next().unwrap_or_default();
            self.existing.retain(|(_, path)| path != gone);
        }
    }

    fn collection(&self, kind: &Kind) -> String {
        match kind.namespaced {
            true => format!("{}/namespaces/{}/{}", kind.api, self.namespace, kind.plural),
            false => format!("{}/{}", kind.api, kind.plural),
        }
    }

    fn name(&mut self, kind: &Kind) -> String {
        let name = pick(&mut self.rng, &["one", "two", "three"]);
        // Names of cluster-scoped objects must not meet those of other stories.
        if kind.namespaced {
            name.into()
        } else {
            format!("s{}-{name}", self.seed)
        }
    }

    /// The path of an object: mostly one that exists.
    fn object(&mut self) -> (&'static Kind, String) {
        if !self.existing.is_empty() && !rarely(&mut self.rng, 8) {
            let (at, path) = pick(&mut self.rng, &self.existing);
            return (&KINDS[at], path);
        }
        let kind = &KINDS[self.rng.random_range(0..KINDS.len())];
        let name = self.name(kind);
        (kind, format!("{}/{name}", self.collection(kind)))
    }

    pub fn next_step(&mut self) -> Step {
        match self.rng.random_range(0..100) {
            0..30 => self.create(),
            30..36 => self.get(),
            36..42 => self.list(),
            42..56 => self.update(),
            56..78 => self.patch(),
            78..84 => self.write_status(),
            84..88 => self.scale(),
            88..91 => self.evict(),
            91..98 => self.delete(),
            _ => self.nonsense(),
        }
    }

    /// Options that any write may have.
    fn options(&mut self) -> String {
        let mut options = Vec::new();
        if rarely(&mut self.rng, 10) {
            options.push(pick(&mut self.rng, &["dryRun=All", "dryRun=All", "dryRun=Some"]));
        }
        if rarely(&mut self.rng, 4) {
            options.push(pick(
                &mut self.rng,
                &[
                    "fieldValidation=Strict",
                    "fieldValidation=Ignore",
                    "fieldValidation=Warn",
                ],
            ));
        }
        if rarely(&mut self.rng, 4) {
            options.push("fieldManager=other");
        }
        if options.is_empty() {
            String::new()
        } else {
            format!("?{}", options.join("&"))
        }
    }

    fn create(&mut self) -> Step {
        let kind = &KINDS[self.rng.random_range(0..KINDS.len())];
        let mut object = (kind.make)(&mut self.rng);
        if !rarely(&mut self.rng, 20) {
            object["metadata"]["name"] = self.name(kind).into();
        }
        if rarely(&mut self.rng, 15) {
            object["metadata"]["name"] = "Not a name".into();
        }
        if rarely(&mut self.rng, 6) {
            object["metadata"]["finalizers"] = pick(&mut self.rng, &[json!(["example.com/hold"]), json!(["bad"])]);
        }
        if rarely(&mut self.rng, 4) {
            object["metadata"]["annotations"] = json!({"note": "x"});
        }
        if kind.strategic && rarely(&mut self.rng, 20) {
            object["kind"] = "Other".into();
        }
        let path = format!("{}{}", self.collection(kind), self.options());
        Step {
            method: Method::POST,
            path,
            content_type: JSON,
            body: Body::Json(object),
        }
    }

    fn get(&mut self) -> Step {
        let (_, path) = self.object();
        Step {
            method: Method::GET,
            path,
            content_type: "",
            body: Body::None,
        }
    }

    fn list(&mut self) -> Step {
        let kind = KINDS
            .iter()
            .filter(|kind| kind.namespaced)
            .nth(self.rng.random_range(0..6))
            .unwrap_or(&KINDS[0]);
        let selector = pick(
            &mut self.rng,
            &[
                "",
                "?labelSelector=app%3Da",
                "?labelSelector=app+in+(a,b),!zone",
                "?labelSelector=app%3D%3D%3D",
                "?fieldSelector=metadata.name%3Done",
                "?fieldSelector=spec.none%3Dx",
            ],
        );
        let path = format!("{}{selector}", self.collection(kind));
        Step {
            method: Method::GET,
            path,
            content_type: "",
            body: Body::None,
        }
    }

    fn update(&mut self) -> Step {
        let (kind, path) = self.object();
        let (field, value) = (kind.field.0, (kind.field.1)(&mut self.rng));
        let change: Change = match self.rng.random_range(0..8) {
            0 => Box::new(|object| object["metadata"]["resourceVersion"] = "1".into()),
            1 => Box::new(|object| object["metadata"]["name"] = "other".into()),
            2 => Box::new(|object| object["metadata"]["uid"] = "other".into()),
            3 => {
                let labels = labels(&mut self.rng);
                Box::new(move |object| object["metadata"]["labels"] = labels.clone())
            }
            4 => Box::new(|object| {
                if let Some(metadata) = object["metadata"].as_object_mut() {
                    metadata.remove("resourceVersion");
                    metadata.remove("finalizers");
                }
            }),
            _ => Box::new(move |object| set(object, field, &value)),
        };
        // What a dry run says about the version of an object that is not there differs, and nobody asks.
        let options = self.options().replace("dryRun=All", "");
        let address = format!("{path}{options}");
        Step {
            method: Method::PUT,
            path: address,
            content_type: JSON,
            body: changed(kind, path, change),
        }
    }

    fn patch(&mut self) -> Step {
        let (kind, path) = self.object();
        let value = (kind.field.1)(&mut self.rng);
        let mut content_type = pick(
            &mut self.rng,
            &[
                "application/json-patch+json",
                "application/merge-patch+json",
                "application/strategic-merge-patch+json",
                "application/apply-patch+yaml",
                "application/apply-patch+yaml",
            ],
        );
        if !kind.strategic && content_type.contains("strategic") && !rarely(&mut self.rng, 5) {
            content_type = "application/merge-patch+json";
        }
        let body = match content_type {
            "application/json-patch+json" => {
                let operation = pick(&mut self.rng, &["add", "replace", "remove", "test"]);
                let place = pick(
                    &mut self.rng,
                    &[kind.field.0, kind.field.0, "/metadata/labels/app", "/none/below"],
                );
                let value = if place.contains("labels") { json!("z") } else { value };
                json!([{"op": operation, "path": place, "value": value}])
            }
            "application/apply-patch+yaml" => return self.apply(kind, &path, value),
            _ => {
                let mut patch = json!({});
                set(&mut patch, kind.field.0, &value);
                if self.rng.random() {
                    patch["metadata"] = json!({"labels": {"app": pick(&mut self.rng, &[json!("z"), Value::Null])}});
                }
                if rarely(&mut self.rng, 8) {
                    patch["metadata"]["finalizers"] = Value::Null;
                }
                patch
            }
        };
        let path = format!("{path}{}", self.options());
        Step {
            method: Method::PATCH,
            path,
            content_type,
            body: Body::Json(body),
        }
    }

    fn apply(&mut self, kind: &Kind, path: &str, value: Value) -> Step {
        let mut object = if kind.kind == "Node" || rarely(&mut self.rng, 3) {
            (kind.make)(&mut self.rng)
        } else {
            json!({})
        };
        object["apiVersion"] = kind.version().into();
        object["kind"] = kind.kind.into();
        if rng_bool(&mut self.rng) {
            set(&mut object, kind.field.0, &value);
        }
        object["metadata"]["labels"] = labels(&mut self.rng);
        // The real server takes an empty map in a custom resource for a change each time it is applied.
        if !kind.strategic {
            object["metadata"]["labels"]["applied"] = "yes".into();
        }
        let manager = pick(&mut self.rng, &["one", "two", "kubectl", ""]);
        let force = pick(&mut self.rng, &["", "&force=true"]);
        let path = format!("{path}?fieldManager={manager}{force}");
        Step {
            method: Method::PATCH,
            path,
            content_type: "application/apply-patch+yaml",
            body: Body::Json(object),
        }
    }

    fn write_status(&mut self) -> Step {
        let (kind, path) = self.object();
        let status = status(&mut self.rng, kind.kind);
        let address = format!("{path}/status");
        if self.rng.random() {
            let change: Change = Box::new(move |object| {
                object["status"] = status.clone();
                object["metadata"]["labels"]["status"] = "written".into();
            });
            return Step {
                method: Method::PUT,
                path: address,
                content_type: JSON,
                body: changed(kind, path, change),
            };
        }
        let content_type = "application/merge-patch+json";
        Step {
            method: Method::PATCH,
            path: address,
            content_type,
            body: Body::Json(json!({"status": status})),
        }
    }

    fn scale(&mut self) -> Step {
        let scalable: Vec<(usize, String)> = self
            .existing
            .iter()
            .filter(|(kind, _)| KINDS[*kind].has_scale)
            .cloned()
            .collect();
        if scalable.is_empty() {
            return self.get();
        }
        let (_, path) = pick(&mut self.rng, &scalable);
        let name = path.rsplit('/').next().unwrap_or_default();
        let otherwise = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": name}});
        // After a write through scale the real server splits the owner's entry in two with the same identity, and
        // later loses one of them. That is not worth imitating, so nothing of it is stored.
        let path = format!("{path}/scale");
        let write = format!("{path}?dryRun=All");
        let replicas = pick(&mut self.rng, &[json!(0), json!(2), json!(-1)]);
        match self.rng.random_range(0..3) {
            0 => Step {
                method: Method::GET,
                path,
                content_type: "",
                body: Body::None,
            },
            1 => {
                let change: Change = Box::new(move |scale| scale["spec"]["replicas"] = replicas.clone());
                Step {
                    method: Method::PUT,
                    path: write,
                    content_type: JSON,
                    body: Body::Changed {
                        path,
                        otherwise,
                        change,
                    },
                }
            }
            _ => {
                let body = Body::Json(json!({"spec": {"replicas": replicas}}));
                Step {
                    method: Method::PATCH,
                    path: write,
                    content_type: "application/merge-patch+json",
                    body,
                }
            }
        }
    }

    fn evict(&mut self) -> Step {
        let pods: Vec<(usize, String)> = self
            .existing
            .iter()
            .filter(|(kind, _)| KINDS[*kind].kind == "Pod")
            .cloned()
            .collect();
        if pods.is_empty() {
            return self.get();
        }
        let (_, path) = pick(&mut self.rng, &pods);
        let name = path.rsplit('/').next().unwrap_or_default();
        let mut eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": self.namespace}});
        if rarely(&mut self.rng, 4) {
            eviction["deleteOptions"] = json!({"gracePeriodSeconds": 0});
        }
        Step {
            method: Method::POST,
            path: format!("{path}/eviction"),
            content_type: JSON,
            body: Body::Json(eviction),
        }
    }

    fn delete(&mut self) -> Step {
        let (_, path) = self.object();
        let options = pick(
            &mut self.rng,
            &[
                Body::None,
                Body::None,
                Body::Json(json!({"gracePeriodSeconds": 0})),
                Body::Json(json!({"preconditions": {"uid": "other"}})),
                Body::Json(json!({"propagationPolicy": "Sometimes"})),
                Body::Json(json!({"dryRun": ["All"]})),
            ],
        );
        let content_type = if matches!(options, Body::None) { "" } else { JSON };
        Step {
            method: Method::DELETE,
            path,
            content_type,
            body: options,
        }
    }

    fn nonsense(&mut self) -> Step {
        let (kind, path) = self.object();
        let collection = self.collection(kind);
        let below = if kind.strategic { "none" } else { "status" };
        match self.rng.random_range(0..5) {
            0 => Step {
                method: Method::POST,
                path: collection,
                content_type: JSON,
                body: Body::Raw("{".into()),
            },
            1 => Step {
                method: Method::POST,
                path: collection,
                content_type: "text/plain",
                body: Body::Raw("x".into()),
            },
            2 => Step {
                method: Method::GET,
                path: format!("{path}/{below}"),
                content_type: "",
                body: Body::None,
            },
            3 => Step {
                method: Method::PUT,
                path: collection,
                content_type: JSON,
                body: Body::Json(json!({})),
            },
            _ => {
                let path = "/apis/none.example.com/v1/things".to_owned();
                Step {
                    method: Method::GET,
                    path,
                    content_type: "",
                    body: Body::None,
                }
            }
        }
    }
}

impl Clone for Body {
    fn clone(&self) -> Self {
        match self {
            Body::None => Body::None,
            Body::Json(value) => Body::Json(value.clone()),
            Body::Raw(text) => Body::Raw(text.clone()),
            Body::Changed { .. } => unreachable!("a change is made once and sent once"),
        }
    }
}

fn rng_bool(rng: &mut StdRng) -> bool {
    rng.random()
}

/// A body for an update. An object that is not there is named only.
fn changed(kind: &Kind, path: String, change: Change) -> Body {
    let name = path.rsplit('/').next().unwrap_or_default();
    let otherwise = json!({"apiVersion": kind.version(), "kind": kind.kind, "metadata": {"name": name}});
    Body::Changed {
        path,
        otherwise,
        change,
    }
}

/// Puts a value at a pointer, making what lies on the way.
fn set(object: &mut Value, pointer: &str, value: &Value) {
    let mut at = object;
    for name in pointer.trim_start_matches('/').split('/') {
        if !at.is_object() {
            *at = json!({});
        }
        at = &mut at[name];
    }
    *at = value.clone();
}
