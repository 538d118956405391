//! Quantiles over the last while, which the metrics library does not have.

use std::collections::{BTreeMap, VecDeque};

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

use super::page::{Kind, Page};

const QUANTILES: [f64; 5] = [0.0, 0.5, 0.9, 0.99, 1.0];
/// Quantiles are those of the last ten minutes, as Prometheus clients have them by default.
const WINDOW: SignedDuration = SignedDuration::from_mins(10);
/// With more than this within the window the oldest go early; the quantiles stay good to a fraction of a percent.
const MOST: usize = 4096;

/// A summary for each value of one label, or a single one where the label is empty.
#[derive(Debug)]
pub struct Summary {
    name: &'static str,
    help: &'static str,
    label: &'static str,
    series: Mutex<BTreeMap<String, Series>>,
}

#[derive(Debug, Default)]
struct Series {
    recent: VecDeque<(Timestamp, f64)>,
    count: u64,
    sum: f64,
}

impl Summary {
    pub fn new(name: &'static str, help: &'static str, label: &'static str) -> Self {
        // The only series of a summary without a label is there before anything happens.
        let only = label.is_empty().then(|| (String::new(), Series::default()));
        Self {
            name,
            help,
            label,
            series: Mutex::new(only.into_iter().collect()),
        }
    }

    pub fn observe(&self, label: &str, value: f64, now: Timestamp) {
        let mut all = self.series.lock();
        let series = all.entry(label.to_owned()).or_default();
        series.count += 1;
        series.sum += value;
        series.recent.push_back((now, value));
        while series.recent.len() > MOST {
            series.recent.pop_front();
        }
    }

    pub fn write(&self, page: &mut Page, now: Timestamp) {
        let mut family = page.family(self.name, Kind::Summary, self.help);
        for (label, series) in self.series.lock().iter_mut() {
            let labels: Vec<(&str, String)> = if self.label.is_empty() {
                Vec::new()
            } else {
                vec![(self.label, label.clone())]
            };
            for (quantile, value) in QUANTILES.into_iter().zip(series.quantiles(now)) {
                let mut labels = labels.clone();
                labels.push(("quantile", quantile.to_string()));
                family.sample(&labels, value);
            }
            family.sample_of("_sum", &labels, series.sum);
            family.sample_of("_count", &labels, series.count as f64);
        }
    }
}

impl Series {
    /// Not a number where nothing was observed lately.
    fn quantiles(&mut self, now: Timestamp) -> Vec<f64> {
        while self.recent.front().is_some_and(|(at, _)| *at + WINDOW < now) {
            self.recent.pop_front();
        }
        let mut values: Vec<f64> = self.recent.iter().map(|(_, value)| *value).collect();
        values.sort_by(f64::total_cmp);
        let at = |quantile: f64| {
            let place = (quantile * values.len() as f64).ceil() as usize;
            values.get(place.saturating_sub(1)).copied().unwrap_or(f64::NAN)
        };
        QUANTILES.into_iter().map(at).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_last_ten_minutes() {
        let summary = Summary::new("took", "How long", "");
        let at = |secs: i64| Timestamp::UNIX_EPOCH + SignedDuration::from_secs(secs);
        summary.observe("", 1_000.0, at(0));
        for value in 1..=100 {
            summary.observe("", f64::from(value), at(700));
        }
        let mut page = Page::default();
        summary.write(&mut page, at(701));
        let text = page.finish();
        for line in [
            "# TYPE took summary",
            "took{quantile=\"0\"} 1",
            "took{quantile=\"0.5\"} 50",
            "took{quantile=\"0.9\"} 90",
            "took{quantile=\"0.99\"} 99",
            "took{quantile=\"1\"} 100",
            "took_sum 6050",
            "took_count 101",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
        }
    }
}
