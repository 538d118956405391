//! What a cloud says about an instance without being asked.

use jiff::Timestamp;
use model::ProviderId;

/// One message of the cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub kind: NoticeKind,
    /// Whom it concerns; more than one when the cloud speaks of several at once.
    pub instances: Vec<ProviderId>,
    pub sent: Timestamp,
    /// What the cloud calls this message, for [`acknowledge`](crate::CloudProvider::acknowledge).
    pub receipt: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NoticeKind {
    /// Spot capacity is taken back within minutes.
    SpotInterrupted,
    /// The owner of a capacity reservation takes it back within minutes.
    ReservationInterrupted,
    /// The instance stops or has stopped.
    InstanceStopped,
    /// The instance ends or has ended.
    InstanceTerminated,
    /// The cloud has announced maintenance.
    ScheduledChange,
    /// Spot capacity may become scarce. Nothing happens to the instance yet.
    RebalanceRecommended,
}

impl NoticeKind {
    pub const ALL: [NoticeKind; 6] = [
        NoticeKind::SpotInterrupted,
        NoticeKind::ReservationInterrupted,
        NoticeKind::InstanceStopped,
        NoticeKind::InstanceTerminated,
        NoticeKind::ScheduledChange,
        NoticeKind::RebalanceRecommended,
    ];

    /// Upstream's name for it: the value of the metrics' label `message_type`, which dashboards know.
    pub fn label(self) -> &'static str {
        match self {
            NoticeKind::SpotInterrupted => "spot_interrupted",
            NoticeKind::ReservationInterrupted => "capacity_reservation_interrupted",
            NoticeKind::InstanceStopped => "instance_stopped",
            NoticeKind::InstanceTerminated => "instance_terminated",
            NoticeKind::ScheduledChange => "scheduled_change",
            NoticeKind::RebalanceRecommended => "rebalance_recommendation",
        }
    }
}
