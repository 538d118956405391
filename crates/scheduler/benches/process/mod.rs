//! Measurements in processes of their own, so that the peak of memory is that measurement's own.

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, ensure};
use rustix::time::{ClockId, clock_gettime};
use serde::de::DeserializeOwned;

/// CPU time of all threads of this process.
pub fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(now.tv_sec).expect("a process has run for a positive time");
    let nanos = u32::try_from(now.tv_nsec).expect("there are less than 10^9 nanoseconds in a second");
    Duration::new(seconds, nanos)
}

/// The most memory that this process has had at once.
pub fn peak_mib() -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status").context("the peak of memory is read from /proc")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line
        .and_then(|rest| rest.trim().strip_suffix(" kB"))
        .context("the kernel knows the peak")?;
    Ok(kib.parse::<u64>()? / 1024)
}

/// This program once more, to measure something.
pub fn measure() -> anyhow::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("measure");
    Ok(command)
}

/// What a program prints as JSON about a case.
pub fn answer<T: DeserializeOwned>(mut command: Command, case: &str) -> anyhow::Result<T> {
    command.args(case.split(' ')).stderr(Stdio::inherit());
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    ensure!(output.status.success(), "{command:?} failed: {}", output.status);
    Ok(serde_json::from_slice(&output.stdout)?)
}
