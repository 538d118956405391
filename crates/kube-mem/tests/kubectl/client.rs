//! A server, and a kubectl that talks to it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

use kube_mem::ApiServer;
use kube_mem::https::HttpsListener;
use tempfile::TempDir;

/// A server with a kubeconfig and a cache of its own.
pub struct Kubectl {
    server: ApiServer,
    directory: TempDir,
    _listener: HttpsListener,
}

/// What a command left behind.
pub struct Outcome {
    pub success: bool,
    pub stdout: String,
    pub stderr: String,
}

impl Kubectl {
    pub async fn start() -> Self {
        let server = ApiServer::default();
        let listener = HttpsListener::bind(server.clone(), ([127, 0, 0, 1], 0).into())
            .await
            .expect("a free port on loopback");
        let directory = tempfile::tempdir().expect("a temporary directory");
        std::fs::write(directory.path().join("kubeconfig"), listener.kubeconfig("memory")).expect("a kubeconfig");
        Kubectl {
            server,
            directory,
            _listener: listener,
        }
    }

    /// A client of the same server, for what kubectl cannot do.
    pub fn client(&self) -> kube::Client {
        self.server.client()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        command
            .arg("--kubeconfig")
            .arg(self.directory.path().join("kubeconfig"))
            .arg("--cache-dir")
            .arg(self.directory.path().join("cache"))
            .args(args)
            .env("HOME", self.directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn run(&self, args: &[&str]) -> Outcome {
        self.run_with(args, "")
    }

    /// Runs with `input` on standard input.
    pub fn run_with(&self, args: &[&str], input: &str) -> Outcome {
        let mut child = self.command(args).spawn().expect("kubectl is installed");
        child
            .stdin
            .take()
            .expect("a pipe")
            .write_all(input.as_bytes())
            .expect("kubectl reads its input");
        let output = child.wait_with_output().expect("kubectl ends");
        Outcome {
            success: output.status.success(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The output of a command that succeeds.
    #[track_caller]
    pub fn ok(&self, args: &[&str]) -> String {
        self.pipe(args, "")
    }

    #[track_caller]
    pub fn pipe(&self, args: &[&str], input: &str) -> String {
        let outcome = self.run_with(args, input);
        assert!(
            outcome.success,
            "kubectl {}: {}{}",
            args.join(" "),
            outcome.stdout,
            outcome.stderr
        );
        outcome.stdout
    }

    /// The complaint of a command that fails.
    #[track_caller]
    pub fn err(&self, args: &[&str]) -> String {
        let outcome = self.run(args);
        assert!(!outcome.success, "kubectl {}: {}", args.join(" "), outcome.stdout);
        outcome.stderr
    }

    /// A table's lines with single spaces, ages replaced by `_`.
    #[track_caller]
    pub fn rows(&self, args: &[&str]) -> Vec<String> {
        self.ok(args).lines().map(row).collect()
    }

    /// A command that goes on until it is dropped.
    pub fn watch(&self, args: &[&str]) -> Watch {
        let mut child = self.command(args).spawn().expect("kubectl is installed");
        let lines = BufReader::new(child.stdout.take().expect("a pipe"));
        Watch { child, lines }
    }
}

/// A running `kubectl get -w`.
pub struct Watch {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Watch {
    /// The next line, when it comes.
    pub fn row(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("kubectl writes lines");
        row(line.trim_end())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // It may have ended by itself, which is just as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn row(line: &str) -> String {
    let words: Vec<&str> = line
        .split_whitespace()
        .map(|word| if is_age(word) { "_" } else { word })
        .collect();
    words.join(" ")
}

/// `5s`, `3m10s`, `2y33d`.
fn is_age(word: &str) -> bool {
    word.len() > 1
        && word.starts_with(|c: char| c.is_ascii_digit())
        && word.ends_with(['s', 'm', 'h', 'd', 'y'])
        && word.chars().all(|c| c.is_ascii_digit() || "smhdy".contains(c))
}
