//! The controller as a process, without a lease, so that the next one can start at once.

use std::path::Path;

use testkit::Process;

pub struct Controller(Process);

impl Controller {
    /// With simulated machines.
    pub fn for_cluster(kubeconfig: &Path) -> Self {
        Self::of(kubeconfig, &["--cloud-provider", "sim"])
    }

    /// With instances of an AWS region, which these variables lead to.
    #[cfg(feature = "aws")]
    pub fn for_region(kubeconfig: &Path, environment: &[(&str, &str)]) -> Self {
        let Self(mut process) = Self::of(kubeconfig, &[]);
        for (name, value) in environment {
            process = process.variable(name, value);
        }
        Self(process)
    }

    fn of(kubeconfig: &Path, arguments: &[&str]) -> Self {
        let process = Process::controller(env!("CARGO_BIN_EXE_karpenter"), kubeconfig);
        let process = process.arguments(&["--disable-leader-election"]).arguments(arguments);
        Self(process.variable("LOG_LEVEL", "debug"))
    }

    pub fn start(&mut self) {
        self.0.start();
    }

    /// Ends the process without a word, as an out-of-memory kill does.
    pub fn kill(&mut self) {
        self.0.kill();
    }

    /// Whether the process that was started last is still there.
    pub fn runs(&mut self) -> bool {
        self.0.runs()
    }
}
