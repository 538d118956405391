//! The controller as a process of a test's own, which can be killed and started again.

use std::{
    ffi::OsStr,
    fs::File,
    io::{Read as _, Write as _},
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

use tempfile::TempDir;

/// How much of its log a process shows when its test has failed.
const LAST_WORDS: usize = 60;

/// A process that ends with the test, however that ends. What it says goes to a file of its own for every start.
pub struct Process {
    program: PathBuf,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
    health_port: u16,
    metrics_port: u16,
    logs: TempDir,
    starts: usize,
    child: Option<Child>,
}

impl Process {
    /// `karpenter controller` for a cluster, on free ports. It is not started yet.
    pub fn controller(program: &str, kubeconfig: &Path) -> Self {
        let process = Self {
            program: program.into(),
            arguments: vec!["controller".to_owned()],
            variables: Vec::new(),
            health_port: free_port(),
            metrics_port: free_port(),
            logs: tempfile::tempdir().expect("a folder for logs"),
            starts: 0,
            child: None,
        };
        let (health, metrics) = (process.health_port.to_string(), process.metrics_port.to_string());
        process
            .variable("KUBECONFIG", &kubeconfig.to_string_lossy())
            .variable("HEALTH_PROBE_PORT", &health)
            .variable("METRICS_PORT", &metrics)
    }

    #[must_use]
    pub fn arguments(mut self, arguments: &[&str]) -> Self {
        self.arguments
            .extend(arguments.iter().map(|argument| (*argument).to_owned()));
        self
    }

    #[must_use]
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn start(&mut self) {
        self.starts += 1;
        let log = File::create(self.log_file()).expect("a log file");
        let child = Command::new(&self.program)
            .args(&self.arguments)
            .envs(self.variables.iter().map(|(name, value)| (OsStr::new(name), value)))
            .stdin(Stdio::null())
            .stderr(log.try_clone().expect("the log file a second time"))
            .stdout(log)
            .spawn()
            .expect("the program starts");
        self.child = Some(child);
    }

    /// Ends the process without a word, as an out-of-memory kill does.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("the process can be killed");
            child.wait().expect("the process ends");
        }
    }

    /// Asks the process to end, as a kubelet does, and gives its exit code.
    pub fn stop(&mut self) -> Option<i32> {
        let mut child = self.child.take().expect("it has been started");
        let told = Command::new("kill")
            .args(["-s", "TERM", &child.id().to_string()])
            .status();
        assert!(told.expect("kill runs").success(), "there is no such process");
        child.wait().expect("the process ends").code()
    }

    /// What one of its ports answers to a request without a body.
    pub fn ask(port: u16, method: &str, path: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    /// Whether the process that was started last is still there.
    pub fn runs(&mut self) -> bool {
        let child = self.child.as_mut();
        child.is_some_and(|child| child.try_wait().expect("it is our child").is_none())
    }

    pub fn health_port(&self) -> u16 {
        self.health_port
    }

    pub fn metrics_port(&self) -> u16 {
        self.metrics_port
    }

    /// What the process that was started last has said so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    fn log_file(&self) -> PathBuf {
        self.logs.path().join(format!("{}.log", self.starts))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            let last = &lines[lines.len().saturating_sub(LAST_WORDS)..];
            eprintln!("the controller's last words:\n{}", last.join("\n"));
        }
    }
}

/// A port of this machine that nobody listens on and that stays so until a program opens it: the system takes the ports of
/// outgoing connections from a range far above, the control plane takes its own from 20,000 on, and every process that asks
/// begins at a place that follows from its id.
pub fn free_port() -> u16 {
    const FIRST: u32 = 10_000;
    const PORTS: u32 = 10_000;
    const EACH: u32 = 10;
    static ASKED: AtomicU32 = AtomicU32::new(0);
    loop {
        let asked = ASKED.fetch_add(1, Ordering::Relaxed);
        let place = std::process::id().wrapping_mul(EACH).wrapping_add(asked);
        let port = u16::try_from(FIRST + place % PORTS).expect("20,000 is a port");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
