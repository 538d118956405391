//! A real Kubernetes control plane of a test's own, on loopback, built from Go modules by `tools/control-plane`.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
};

use kube::{Client, Config, config::KubeConfigOptions, config::Kubeconfig};
use tempfile::TempDir;
use tokio::process::Command;

/// How much of a cluster a test needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    /// etcd and kube-apiserver: what does the API accept?
    ApiServer,
    /// Controller manager and scheduler, too.
    Full,
    /// And kwok in the kubelets' place.
    WithKwok,
}

#[derive(Debug, thiserror::Error)]
pub enum ControlPlaneError {
    #[error("could not run {script}")]
    Spawn {
        script: PathBuf,
        #[source]
        cause: std::io::Error,
    },
    #[error("{script} failed; its last words: {stderr}")]
    Failed { script: PathBuf, stderr: String },
    #[error("could not read the kubeconfig of the control plane")]
    Kubeconfig(#[from] kube::config::KubeconfigError),
    #[error("could not make a client for the control plane")]
    Client(#[from] kube::Error),
}

/// A running control plane. It stops when this is dropped, and also when the test process is killed.
#[derive(Debug)]
pub struct ControlPlane {
    data: TempDir,
    kubeconfig: PathBuf,
}

impl ControlPlane {
    /// Starts the parts and waits until they serve.
    ///
    /// The binaries are built on first use, which takes many minutes; `make test` does that before it runs any test.
    pub async fn start(parts: Parts) -> Result<Self, ControlPlaneError> {
        run(&tool("build"), &[]).await?;
        let data = tempfile::Builder::new()
            .prefix("control-plane.")
            .tempdir()
            .map_err(|cause| ControlPlaneError::Spawn {
                script: tool("up"),
                cause,
            })?;
        let owner = std::process::id().to_string();
        let mut arguments = vec!["--owner", &owner];
        match parts {
            Parts::ApiServer => arguments.push("--api-only"),
            Parts::Full => {}
            Parts::WithKwok => arguments.push("--with-kwok"),
        }
        let directory = data.path().to_string_lossy().into_owned();
        arguments.push(&directory);
        let printed = run(&tool("up"), &arguments).await?;
        Ok(Self {
            data,
            kubeconfig: PathBuf::from(printed.trim()),
        })
    }

    /// The path of a cluster-admin kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// A cluster-admin client.
    pub async fn client(&self) -> Result<Client, ControlPlaneError> {
        let kubeconfig = Kubeconfig::read_from(&self.kubeconfig)?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        Ok(Client::try_from(config)?)
    }

    /// Where logs, keys and process ids lie; `audit.log` has the requests of Karpenter's service account.
    pub fn data(&self) -> &Path {
        self.data.path()
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        // The folder goes with `data`; what is left to do is to end the processes, each by its id.
        let stopped = std::process::Command::new(tool("down")).arg(self.data.path()).status();
        if let Err(error) = stopped {
            eprintln!(
                "could not stop the control plane in {}: {error}",
                self.data.path().display()
            );
        }
    }
}

/// Found from the package whose test runs, not from where this was compiled: clones may share their build output.
fn tool(name: &str) -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&package).join("../../tools/control-plane").join(name)
}

async fn run(script: &Path, arguments: &[&str]) -> Result<String, ControlPlaneError> {
    let output = Command::new(script)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .await
        .map_err(|cause| ControlPlaneError::Spawn {
            script: script.to_owned(),
            cause,
        })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(ControlPlaneError::Failed {
        script: script.to_owned(),
        stderr,
    })
}
