//! Zones that the cluster is shifted out of.

use std::{collections::BTreeSet, sync::Arc};

use clock::Clock;
use parking_lot::RwLock;

use crate::{
    error::AwsError,
    ports::{Shift, ZonalShift},
};

/// The shifts of the cluster, as last told.
pub struct ZonalShifts {
    port: Arc<dyn ZonalShift>,
    /// `None` where the feature is off; then nothing is ever shifted.
    cluster_arn: Option<String>,
    clock: Arc<dyn Clock>,
    shifts: RwLock<Vec<Shift>>,
}

impl ZonalShifts {
    pub fn new(port: Arc<dyn ZonalShift>, cluster_arn: Option<String>, clock: Arc<dyn Clock>) -> Self {
        Self {
            port,
            cluster_arn,
            clock,
            shifts: RwLock::default(),
        }
    }

    /// Asks again. What is not told any more is over.
    pub async fn refresh(&self) -> Result<(), AwsError> {
        if let Some(arn) = &self.cluster_arn {
            let shifts = self.port.shifts(arn).await?;
            *self.shifts.write() = shifts;
        }
        Ok(())
    }

    /// The ids of the zones to keep away from now.
    pub fn shifted(&self) -> BTreeSet<String> {
        let now = self.clock.now();
        let shifts = self.shifts.read();
        let active = shifts.iter().filter(|shift| shift.applied && now < shift.expires);
        active.map(|shift| shift.away_from.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::testing::fake::FakeAws;

    #[tokio::test(start_paused = true)]
    async fn a_shift_counts_while_it_is_applied_told_and_not_expired() {
        let aws = FakeAws::new();
        let shift = |zone: &str, minutes: i64, applied: bool| Shift {
            away_from: zone.to_owned(),
            expires: aws.now().checked_add(SignedDuration::from_mins(minutes)).unwrap(),
            applied,
        };
        let shifts = ZonalShifts::new(aws.ports().zonal_shift, Some("arn".to_owned()), aws.clock());
        aws.set_shifts(vec![
            shift("az1", 5, true),
            shift("az2", 60, true),
            shift("az3", 60, false),
        ]);
        shifts.refresh().await.unwrap();
        assert_eq!(shifts.shifted().into_iter().collect::<Vec<_>>(), ["az1", "az2"]);
        tokio::time::advance(std::time::Duration::from_secs(301)).await;
        assert_eq!(shifts.shifted().into_iter().collect::<Vec<_>>(), ["az2"]);
        aws.set_shifts(vec![shift("az1", 60, true)]);
        shifts.refresh().await.unwrap();
        assert_eq!(
            shifts.shifted().into_iter().collect::<Vec<_>>(),
            ["az1"],
            "a cancelled shift is over"
        );
        let off = ZonalShifts::new(aws.ports().zonal_shift, None, aws.clock());
        off.refresh().await.unwrap();
        assert!(off.shifted().is_empty());
    }
}
