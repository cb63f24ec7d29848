//! What a command costs: wall clock, processor seconds and peak memory, for people and for `bench`.

use std::time::Instant;

/// Clock ticks a second in `/proc/self/stat`; Linux shows 100 to programs on every platform.
const TICKS_PER_SECOND: f64 = 100.0;

/// The wall clock. Never used inside a run.
#[expect(clippy::disallowed_methods, reason = "people wait in wall-clock time; no run sees this")]
pub fn now() -> Instant {
    Instant::now()
}

/// Processor seconds that this process has used, user and system; none where the system does not say.
pub fn cpu_seconds() -> Option<f64> {
    cpu_from(&std::fs::read_to_string("/proc/self/stat").ok()?)
}

/// The largest resident memory of this process so far, in bytes; none where the system does not say.
pub fn peak_rss_bytes() -> Option<u64> {
    peak_from(&std::fs::read_to_string("/proc/self/status").ok()?)
}

/// Starts the count of peak memory anew, where the system can.
pub fn reset_peak_rss() {
    // A refusal only means that the peak of an earlier measurement stays in the figure.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

fn cpu_from(stat: &str) -> Option<f64> {
    // The second field is the program's name in brackets, which may hold spaces and brackets.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some((ticks(11)? + ticks(12)?) as f64 / TICKS_PER_SECOND)
}

fn peak_from(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_from_what_linux_writes() {
        let stat = "7 (a )( b) S 1 7 7 0 -1 4194560 99 0 0 0 250 50 0 0 20 0 1 0 100 1000 200";
        assert_eq!(cpu_from(stat), Some(3.0));
        assert_eq!(peak_from("Name:\tsim\nVmHWM:\t    2048 kB\nVmRSS:\t 1 kB\n"), Some(2_097_152));
        assert_eq!(cpu_from("nonsense"), None);
        assert_eq!(peak_from("VmHWM: many"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_has_figures() {
        assert!(cpu_seconds().is_some() && peak_rss_bytes().is_some_and(|bytes| bytes > 1_000_000));
    }
}
