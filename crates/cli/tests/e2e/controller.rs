//! The controller as a process that can be stopped, killed and started again.

use std::{
    fs::File,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

pub struct Controller {
    kubeconfig: PathBuf,
    arguments: Vec<String>,
    environment: Vec<(&'static str, String)>,
    logs: TempDir,
    starts: usize,
    process: Option<Child>,
}

impl Controller {
    /// With simulated machines.
    pub fn for_cluster(kubeconfig: &Path) -> Self {
        Self::with(kubeconfig, &["--cloud-provider", "sim"], Vec::new())
    }

    pub fn with(kubeconfig: &Path, arguments: &[&str], environment: Vec<(&'static str, String)>) -> Self {
        let logs = tempfile::tempdir().expect("a folder for logs");
        Self {
            kubeconfig: kubeconfig.to_owned(),
            arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
            environment,
            logs,
            starts: 0,
            process: None,
        }
    }

    pub fn start(&mut self) {
        self.starts += 1;
        let log = File::create(self.log()).expect("a log file");
        let process = Command::new(env!("CARGO_BIN_EXE_karpenter"))
            .args(["controller", "--disable-leader-election"])
            .args(&self.arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .env("KUBECONFIG", &self.kubeconfig)
            .env("LOG_LEVEL", "debug")
            .env("METRICS_PORT", free_port().to_string())
            .env("HEALTH_PROBE_PORT", free_port().to_string())
            .stdin(Stdio::null())
            .stderr(log.try_clone().expect("the log file a second time"))
            .stdout(log)
            .spawn()
            .expect("the controller starts");
        self.process = Some(process);
    }

    /// Ends the process without a word, as an out-of-memory kill does.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("the process can be killed");
            process.wait().expect("the process ends");
        }
    }

    /// Whether the process that was started last is still there.
    pub fn runs(&mut self) -> bool {
        let process = self.process.as_mut();
        process.is_some_and(|process| process.try_wait().expect("it is our child").is_none())
    }

    fn log(&self) -> PathBuf {
        self.logs.path().join(format!("controller-{}.log", self.starts))
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            let log = std::fs::read_to_string(self.log()).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            eprintln!(
                "the controller's last words:\n{}",
                lines[lines.len().saturating_sub(60)..].join("\n")
            );
        }
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").port()
}
