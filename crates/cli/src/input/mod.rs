//! Where a command gets its cluster from: files, or the cluster that the kubeconfig names.
//!
//! Files go `document` (text into documents) → `objects` (documents into objects) → `load` (objects into an index, by the
//! same door as watch events). A live cluster enters at `objects`, by way of `live`.

mod document;
mod live;
mod load;
mod objects;
mod place;
mod selector;

use std::sync::Arc;

use clap::Args;
use model::{Snapshot, Vocabulary};
use provider_sim::Catalog;
use serde_json::Value;

use self::document::File;
use crate::exit::Failure;

pub use document::{Depth, files, has_content, texts};
pub use live::connected;
pub use load::Cluster;
pub use place::{BadInput, Place};
pub use selector::Selector;

/// Which cluster is meant.
#[derive(Debug, Args)]
pub struct Source {
    /// Objects to read: a file, a directory, or - for standard input. Can be repeated. [default: the cluster]
    #[arg(short, long, value_name = "FILE")]
    filename: Vec<String>,
    /// The namespace of objects that name none. [default: default]
    #[arg(short, long)]
    namespace: Option<String>,
    #[command(flatten)]
    connection: Connection,
}

/// How a live cluster is reached.
#[derive(Debug, Args)]
pub struct Connection {
    /// The kubeconfig to use. [default: KUBECONFIG, then ~/.kube/config, then the pod's own]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<String>,
    /// The context of the kubeconfig to use. [default: the current one]
    #[arg(long)]
    context: Option<String>,
}

/// What is read of a live cluster beyond the usual. Files are read as a whole.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    /// Services and controllers, which are many and matter to default spreads alone.
    pub selectors: bool,
    /// The node classes of EC2, which say what a region sells to a pool; where a pool asks for machines of EC2.
    pub ec2_classes: bool,
}

/// Whose machines the pools of a cluster ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sellers {
    /// EC2, for at least one pool.
    Ec2,
    Others,
}

impl Source {
    /// Reads everything that decisions depend on, in words that may depend on who sells to the pools.
    pub fn read(
        &self,
        vocabulary: impl FnOnce(Sellers) -> Arc<Vocabulary>,
        wanted: Wanted,
    ) -> Result<Cluster, Failure> {
        if self.is_live() {
            live::read(&self.connection, wanted, vocabulary)
        } else {
            self.read_files(vocabulary)
        }
    }

    /// The flags that somebody gave to say which cluster is meant.
    pub fn given(&self) -> Vec<&'static str> {
        let flags = [
            ("-f", !self.filename.is_empty()),
            ("--namespace", self.namespace.is_some()),
            ("--kubeconfig", self.connection.kubeconfig.is_some()),
            ("--context", self.connection.context.is_some()),
        ];
        let given = flags.into_iter().filter(|(_, is_given)| *is_given);
        given.map(|(flag, _)| flag).collect()
    }

    pub fn is_live(&self) -> bool {
        self.filename.is_empty()
    }

    /// The objects of the files as they are written.
    pub fn raw(&self) -> Result<Vec<Value>, Failure> {
        objects(&self.filename)
    }

    fn read_files(&self, vocabulary: impl FnOnce(Sellers) -> Arc<Vocabulary>) -> Result<Cluster, Failure> {
        let files = document::files(&self.filename, Depth::Folder)?;
        let namespace = self.namespace.as_deref().unwrap_or("default");
        cluster_of_files(&files, namespace, vocabulary).map_err(|bad| Failure::Input(bad.into()))
    }
}

/// The objects of files as they are written.
pub fn objects(filenames: &[String]) -> Result<Vec<Value>, Failure> {
    let mut objects = Vec::new();
    for file in &document::files(filenames, Depth::Folder)? {
        let documents = document::documents(file).map_err(|bad| Failure::Input(bad.into()))?;
        for document in documents {
            objects.push(document.decode().map_err(|bad| Failure::Input(bad.into()))?);
        }
    }
    Ok(objects)
}

fn cluster_of_files(
    files: &[File],
    namespace: &str,
    vocabulary: impl FnOnce(Sellers) -> Arc<Vocabulary>,
) -> Result<Cluster, BadInput> {
    let mut documents = Vec::new();
    for file in files {
        documents.extend(document::documents(file)?);
    }
    for document in &mut documents {
        document.default_namespace(namespace);
    }
    load::files(&documents, namespace, vocabulary)
}

/// As if the text had been read from a file.
#[cfg(test)]
pub fn cluster_of_text(text: &str, vocabulary: Arc<Vocabulary>) -> Result<Cluster, BadInput> {
    cluster_of_files(&[File::new("objects", text.to_owned())], "default", |_| vocabulary)
}

/// Lets every pool of the cluster buy from a catalog.
pub fn offer(cluster: &mut Cluster, catalog: &Catalog) {
    let pools: Vec<_> = cluster.snapshot.pools.keys().cloned().collect();
    for pool in pools {
        let shapes = catalog.shapes(&pool);
        cluster.snapshot.catalogs.insert(pool, shapes);
    }
}

/// The name under which people know a machine: its node's once that is registered, its claim's before.
pub fn machine_name<'a>(snapshot: &'a Snapshot, key: &'a model::NodeKey) -> &'a str {
    let machine = snapshot.nodes.get(key);
    let registered = machine.filter(|machine| machine.is_registered());
    match (registered.and_then(|machine| machine.node_name()), key) {
        (Some(name), _) | (None, model::NodeKey::Node(name)) => name.as_str(),
        (None, model::NodeKey::Claim(name)) => name.as_str(),
    }
}
