//! Terraform as a process, on an account that moto emulates.

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

/// Where a build machine without a way to Terraform's registry keeps its providers.
const SHARED_PROVIDERS: &str = "/opt/tf-plugins";

/// Found from the package whose test runs: clones may share their build output.
pub fn repository() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let root = Path::new(&package).join("../..");
    root.canonicalize().expect("the repository is there")
}

#[track_caller]
pub fn run(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().expect("the program is there");
    let (said, complaint) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{command:?} failed:\n{said}\n{complaint}");
    said.into_owned()
}

/// An account in memory. It ends with its standard input, so also when the test is killed.
struct Moto {
    process: Child,
    endpoint: String,
}

impl Moto {
    fn serve() -> Self {
        let mut process = Command::new(repository().join("tools/moto/serve"))
            // The nodes' role refers to policies of AWS.
            .env("MOTO_IAM_LOAD_MANAGED_POLICIES", "true")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("moto starts");
        let mut endpoint = String::new();
        let said = process.stdout.take().expect("its output");
        BufReader::new(said)
            .read_line(&mut endpoint)
            .expect("moto tells its endpoint");
        Self {
            process,
            endpoint: endpoint.trim().to_owned(),
        }
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        self.process.wait().expect("moto ends with its input");
    }
}

/// A folder with the configuration of `on_moto`, and the account that it is applied to.
pub struct Terraform {
    folder: TempDir,
    moto: Moto,
}

impl Terraform {
    pub fn initialised() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (repository, configuration) = (repository(), "crates/cli/tests/deploy/on_moto/main.tf");
        std::fs::copy(repository.join(configuration), folder.path().join("main.tf")).expect("the configuration");
        std::os::unix::fs::symlink(repository.join("deploy/aws/terraform"), folder.path().join("module"))
            .expect("a link to the module");
        std::fs::write(folder.path().join("terraformrc"), "").expect("an empty configuration");
        let terraform = Self {
            folder,
            moto: Moto::serve(),
        };
        let providers = format!("-plugin-dir={SHARED_PROVIDERS}");
        let from = Path::new(SHARED_PROVIDERS).exists().then_some(providers);
        run(terraform.command("init").arg("-input=false").args(from));
        terraform
    }

    pub fn command(&self, subcommand: &str) -> Command {
        let mut command = Command::new("terraform");
        command
            .args([subcommand, "-no-color"])
            .current_dir(self.folder.path())
            .env("TF_CLI_CONFIG_FILE", self.folder.path().join("terraformrc"))
            .env("CHECKPOINT_DISABLE", "1");
        command
    }

    /// Subcommands that look at the account take these.
    pub fn with_account(&self, subcommand: &str) -> Command {
        let mut command = self.command(subcommand);
        command.args([
            "-input=false".to_owned(),
            format!("-var=endpoint={}", self.moto.endpoint),
            format!("-var=deploy={}", repository().join("deploy/aws").display()),
        ]);
        command
    }

    /// What the account answers. Its emulator asks for a signature and reads no more of it than whom the question is for.
    #[track_caller]
    pub fn ask(&self, service: &str, headers: &[&str], body: &str) -> String {
        let scope = format!("Credential=test/20260101/us-west-2/{service}/aws4_request");
        let mut command = Command::new("curl");
        command.args([
            "--fail",
            "--silent",
            "--show-error",
            &self.moto.endpoint,
            "--data",
            body,
        ]);
        command.args([
            "--header",
            &format!("Authorization: AWS4-HMAC-SHA256 {scope}, SignedHeaders=host, Signature=0"),
        ]);
        run(command.args(headers.iter().flat_map(|header| ["--header", header])))
    }

    /// The same for services that speak JSON.
    #[track_caller]
    pub fn ask_json(&self, service: &str, target: &str, body: &Value) -> Value {
        let headers = [
            "Content-Type: application/x-amz-json-1.1",
            &format!("X-Amz-Target: {target}"),
        ];
        serde_json::from_str(&self.ask(service, &headers, &body.to_string())).expect("JSON")
    }

    pub fn outputs(&self) -> Value {
        serde_json::from_str(&run(self.command("output").arg("-json"))).expect("Terraform prints JSON")
    }
}
