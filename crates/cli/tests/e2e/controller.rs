//! The controller over simulated machines, without a lease, so that the next one can start at once.

use std::path::Path;

use testkit::Process;

pub struct Controller(Process);

impl Controller {
    pub fn for_cluster(kubeconfig: &Path) -> Self {
        let process = Process::controller(env!("CARGO_BIN_EXE_karpenter"), kubeconfig);
        let arguments = ["--cloud-provider", "sim", "--disable-leader-election"];
        Self(process.arguments(&arguments).variable("LOG_LEVEL", "debug"))
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
