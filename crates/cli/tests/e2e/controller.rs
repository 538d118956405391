//! The controller as a process, without a lease, so that the next one can start at once.

use std::path::Path;

use testkit::Process;

pub struct Controller {
    process: Process,
    webhook_port: u16,
}

impl Controller {
    /// With simulated machines.
    pub fn for_cluster(kubeconfig: &Path) -> Self {
        Self::of(kubeconfig, &["--cloud-provider", "sim"])
    }

    /// With simulated machines, and with the webhooks of the time of Provisioners on loopback.
    pub fn with_webhooks(kubeconfig: &Path) -> Self {
        let arguments = [
            "--cloud-provider",
            "sim",
            "--bind-address",
            "127.0.0.1",
            "--legacy-webhooks",
        ];
        Self::of(kubeconfig, &arguments)
    }

    /// Where a webhook of this controller answers.
    pub fn webhook(&self, path: &str) -> String {
        format!("https://127.0.0.1:{}{path}", self.webhook_port)
    }

    /// With instances of an AWS region, which these variables lead to.
    #[cfg(feature = "aws")]
    pub fn for_region(kubeconfig: &Path, environment: &[(&str, &str)]) -> Self {
        let mut controller = Self::of(kubeconfig, &[]);
        for (name, value) in environment {
            controller.process = controller.process.variable(name, value);
        }
        controller
    }

    fn of(kubeconfig: &Path, arguments: &[&str]) -> Self {
        let process = Process::controller(env!("CARGO_BIN_EXE_karpenter"), kubeconfig);
        let webhook_port = testkit::free_port();
        let process = process
            .arguments(&["--disable-leader-election"])
            .arguments(arguments)
            .variable("WEBHOOK_PORT", &webhook_port.to_string())
            .variable("LOG_LEVEL", "debug");
        Self { process, webhook_port }
    }

    pub fn start(&mut self) {
        self.process.start();
    }

    /// Ends the process without a word, as an out-of-memory kill does.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Whether the process that was started last is still there.
    pub fn runs(&mut self) -> bool {
        self.process.runs()
    }
}
