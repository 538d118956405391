//! What every process tells of itself, read from the kernel when somebody asks.

use std::{fmt, fs};

use jiff::Timestamp;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{counter::ConstCounter, gauge::ConstGauge},
};

/// The kernel counts processor time in hundredths of a second on every platform that Linux runs on.
const TICKS_PER_SECOND: f64 = 100.0;

#[derive(Debug)]
pub struct Process {
    started: Timestamp,
}

impl Process {
    pub fn starting_at(started: Timestamp) -> Self {
        Self { started }
    }
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut gauge = |name, help, value: f64| {
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)
        };
        gauge(
            "process_start_time_seconds",
            "When the process started",
            self.started.as_second() as f64,
        )?;
        if let Some(bytes) = resident_bytes() {
            gauge("process_resident_memory_bytes", "Memory in use", bytes)?;
        }
        if let Some(open) = open_files() {
            gauge("process_open_fds", "Files and sockets in use", open)?;
        }
        if let Some(seconds) = cpu_seconds() {
            let counter = ConstCounter::new(seconds);
            let descriptor = encoder.encode_descriptor(
                "process_cpu_seconds",
                "Processor time used",
                None,
                counter.metric_type(),
            )?;
            counter.encode(descriptor)?;
        }
        Ok(())
    }
}

fn resident_bytes() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024.0)
}

fn open_files() -> Option<f64> {
    Some(fs::read_dir("/proc/self/fd").ok()?.count() as f64)
}

fn cpu_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name in parentheses may contain spaces; user and system time are the 12th and 13th fields after it.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let ticks: f64 = fields.next()?.parse::<f64>().ok()? + fields.next()?.parse::<f64>().ok()?;
    Some(ticks / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use prometheus_client::{encoding::text::encode, registry::Registry};

    use super::*;

    #[test]
    fn a_process_tells_its_memory_files_and_time() {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Process::starting_at(Timestamp::UNIX_EPOCH)));
        let mut text = String::new();
        encode(&mut text, &registry).expect("writing to a string succeeds");
        assert!(text.contains("process_start_time_seconds 0"), "{text}");
        if cfg!(target_os = "linux") {
            for name in [
                "process_resident_memory_bytes ",
                "process_open_fds ",
                "process_cpu_seconds_total ",
            ] {
                assert!(text.contains(name), "{name} is missing in\n{text}");
            }
        }
    }
}
