//! What the operating system knows about this process, under the names that every Prometheus client uses.

use std::fmt::Write as _;

/// Kernel ticks in a second, as Linux reports processor time. The figure is fixed for user space.
const TICKS: f64 = 100.0;

/// Metrics about the process itself; empty where `/proc` is not there to be read.
pub fn metrics() -> String {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut text = String::new();
    if let Some(bytes) = resident_bytes(&status) {
        gauge(
            &mut text,
            "process_resident_memory_bytes",
            "Resident memory size in bytes",
            "gauge",
            bytes,
        );
    }
    if let Some(seconds) = cpu_seconds(&stat) {
        let help = "Total user and system processor time spent in seconds";
        gauge(&mut text, "process_cpu_seconds_total", help, "counter", seconds);
    }
    if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
        gauge(
            &mut text,
            "process_open_fds",
            "Number of open file descriptors",
            "gauge",
            open.count() as f64,
        );
    }
    text
}

fn gauge(text: &mut String, name: &str, help: &str, kind: &str, value: f64) {
    writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}").expect("writing to a string succeeds");
}

fn resident_bytes(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024.0)
}

/// User and system time are the 14th and 15th field; the second may contain spaces and ends with a parenthesis.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_from_the_kernels_files() {
        assert_eq!(
            resident_bytes("VmHWM:\t 900 kB\nVmRSS:\t     512 kB\n"),
            Some(524_288.0)
        );
        assert_eq!(cpu_seconds("7 (a b) c) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0"), Some(3.0));
        assert_eq!(cpu_seconds("nonsense"), None);
    }
}
