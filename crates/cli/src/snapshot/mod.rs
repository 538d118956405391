//! `karpenter snapshot`: a cluster in one file, for a report of a bug or for `schedule` and `plan` on another machine.
//!
//! `kinds` says what is read, `redact` what is left out: whatever can hold a secret and decides nothing.

mod kinds;
mod redact;

use std::collections::BTreeSet;

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use clock::{Clock as _, SystemClock};
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};

use crate::{
    COMMIT,
    exit::Failure,
    input::{Connection, connected},
    output,
    reader::{Reader, Unread},
};

#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    connection: Connection,
    /// The form of the file.
    #[arg(short, long, value_enum, default_value_t = Output::Yaml)]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Yaml,
    Json,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let bundle = connected(&arguments.connection, async |client: Client| {
        let bundle = taken(&client, SystemClock.now()).await;
        bundle.map_err(|why| Failure::Unreachable(anyhow!("the cluster does not answer: {why}")))
    })?;
    for line in &bundle.notes {
        eprintln!("note: {line}");
    }
    let list = json!({"apiVersion": "v1", "kind": "List", "items": bundle.items});
    match arguments.output {
        Output::Yaml => output::print(&output::yaml(&list)?),
        Output::Json => output::print(&output::json(&list)?),
    }
}

struct Bundle {
    items: Vec<Value>,
    /// What the reader of the file has to know is missing.
    notes: Vec<String>,
}

/// Lists every kind and keeps of each object what matters. The first item tells what the rest is.
async fn taken(reader: &dyn Reader, now: Timestamp) -> Result<Bundle, Unread> {
    let server = reader.version().await?;
    let (mut items, mut notes) = (Vec::new(), Vec::new());
    // Events are asked for in several ways and may be among the answers more than once.
    let mut seen = BTreeSet::new();
    for kind in kinds::ALL {
        match reader.list(&kind).await {
            Ok(objects) => {
                let new = objects.into_iter().filter(|object| {
                    let metadata = &object["metadata"];
                    seen.insert((
                        kind.plural,
                        metadata["namespace"].to_string(),
                        metadata["name"].to_string(),
                    ))
                });
                items.extend(new.filter_map(redact::kept));
            }
            Err(Unread::Absent) => {}
            Err(why) => notes.push(format!("{} are not in the snapshot: {why}", kind.plural)),
        }
    }
    let about = json!({
        "apiVersion": kinds::OWN_VERSION, "kind": kinds::OWN_KIND, "metadata": {"name": "about"},
        "taken": now.to_string(), "kubernetes": server, "karpenter": env!("CARGO_PKG_VERSION"), "commit": COMMIT, "notes": notes,
    });
    items.insert(0, about);
    Ok(Bundle { items, notes })
}
