//! A histogram whose labels and name are only known while the process runs.

use super::page::{Kind, Page};

#[derive(Clone, Debug, PartialEq)]
pub struct TextHistogram {
    bounds: Vec<f64>,
    /// Not cumulative; the last is for what exceeds every bound.
    counts: Vec<u64>,
    sum: f64,
}

impl TextHistogram {
    pub fn new(bounds: Vec<f64>) -> Self {
        Self {
            counts: vec![0; bounds.len() + 1],
            bounds,
            sum: 0.0,
        }
    }

    pub fn observe(&mut self, value: f64) {
        let place = self.bounds.partition_point(|bound| *bound < value);
        self.counts[place] += 1;
        self.sum += value;
    }

    /// A family of histograms, by their labels.
    pub fn write_all<'a>(
        page: &mut Page,
        name: &str,
        help: &str,
        all: impl IntoIterator<Item = (&'a Vec<(String, String)>, &'a Self)>,
    ) {
        let mut family = page.begin(name.to_owned(), Kind::Histogram, help);
        for (labels, histogram) in all {
            let mut sum = 0;
            for (place, count) in histogram.counts.iter().enumerate() {
                sum += count;
                let bound = histogram.bounds.get(place).map_or("+Inf".to_owned(), f64::to_string);
                let mut labels = labels.clone();
                labels.push(("le".to_owned(), bound));
                family.sample_of("_bucket", &labels, sum as f64);
            }
            family.sample_of("_sum", labels, histogram.sum);
            family.sample_of("_count", labels, sum as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_cumulative_and_bounds_belong_to_them() {
        let mut histogram = TextHistogram::new(vec![1.0, 2.0]);
        for value in [0.5, 1.0, 1.5, 9.0] {
            histogram.observe(value);
        }
        let mut page = Page::default();
        TextHistogram::write_all(&mut page, "h", "H", [(&Vec::new(), &histogram)]);
        let text = page.finish();
        let samples: Vec<_> = text.lines().skip(2).collect();
        assert_eq!(
            samples,
            [
                "h_bucket{le=\"1\"} 2",
                "h_bucket{le=\"2\"} 3",
                "h_bucket{le=\"+Inf\"} 4",
                "h_sum 12",
                "h_count 4"
            ]
        );
    }
}
