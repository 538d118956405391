//! What EC2 tells the account: warnings and changes of state, as EventBridge puts them into the queue.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Region, instances::State};

/// What happens to an instance from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warning {
    /// It will be taken away in two minutes.
    SpotInterruption,
    /// Its reservation will be taken away in two minutes.
    ReservationInterruption,
    Rebalance,
    ScheduledChange,
}

impl Region {
    /// Puts the warning into the queue; what is interrupted also ends in time.
    pub fn warn(&mut self, id: &str, warning: Warning, now: Timestamp) {
        let (source, kind, detail) = match warning {
            Warning::SpotInterruption => (
                "aws.ec2",
                "EC2 Spot Instance Interruption Warning",
                json!({"instance-id": id, "instance-action": "terminate"}),
            ),
            Warning::ReservationInterruption => (
                "aws.ec2",
                "EC2 Capacity Reservation Instance Interruption Warning",
                json!({"instance-id": id, "instance-action": "terminate"}),
            ),
            Warning::Rebalance => (
                "aws.ec2",
                "EC2 Instance Rebalance Recommendation",
                json!({"instance-id": id}),
            ),
            Warning::ScheduledChange => (
                "aws.health",
                "AWS Health Event",
                json!({
                    "eventArn": format!("arn:aws:health:{}::event/EC2/AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED/1", self.plan.region),
                    "service": "EC2",
                    "eventTypeCode": "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED",
                    "eventTypeCategory": "scheduledChange",
                    "affectedEntities": [{"entityValue": id}],
                }),
            ),
        };
        if matches!(warning, Warning::SpotInterruption | Warning::ReservationInterruption) {
            let due = now + self.timing.reclaim;
            if let Some(instance) = self.instances.get_mut(id) {
                instance.reclaimed_at.get_or_insert(due);
            }
        }
        self.tell(source, kind, id, detail, now);
    }

    /// An event as EventBridge writes it.
    pub fn tell(&mut self, source: &str, kind: &str, instance: &str, detail: Value, now: Timestamp) {
        let (region, account) = (&self.plan.region, &self.plan.account);
        let event = json!({
            "version": "0",
            "id": self.ids.uuid(),
            "detail-type": kind,
            "source": source,
            "account": account,
            "time": now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            "region": region,
            "resources": [format!("arn:aws:ec2:{region}:{account}:instance/{instance}")],
            "detail": detail,
        });
        self.send(event.to_string(), now);
    }

    /// Puts a message into the queue and tells its id.
    pub fn send(&mut self, body: String, now: Timestamp) -> String {
        let id = self.ids.uuid();
        self.queue.send(id.clone(), body, now);
        id
    }

    /// Ends what has been warned long enough, and tells every change of state since the last time.
    pub(super) fn reclaim_and_report(&mut self, now: Timestamp) {
        let due = |at: Option<Timestamp>| at.is_some_and(|at| at <= now);
        let reclaimed: Vec<String> = self
            .instances
            .values()
            .filter(|instance| due(instance.reclaimed_at) && instance.end.is_none())
            .map(|instance| instance.id.clone())
            .collect();
        for id in reclaimed {
            let message = "Server.SpotInstanceTermination: Instance terminated by Amazon EC2";
            self.terminate(&id, "Server.SpotInstanceTermination", message, now);
        }
        let mut changes = Vec::new();
        for instance in self.instances.values_mut() {
            let present = instance.state(now);
            for state in [State::Pending, State::Running, State::ShuttingDown, State::Terminated] {
                // An instance that was ended while it booted never ran.
                let skipped = state == State::Running
                    && instance
                        .end
                        .as_ref()
                        .is_some_and(|end| end.shutting_down_at < instance.running_at);
                if state <= present && instance.told.is_none_or(|told| told < state) && !skipped {
                    instance.told = Some(state);
                    changes.push((instance.id.clone(), state));
                }
            }
        }
        for (id, state) in changes {
            if state == State::Terminated {
                self.release(&id);
            }
            let detail = json!({"instance-id": id, "state": state.name()});
            self.tell("aws.ec2", "EC2 Instance State-change Notification", &id, detail, now);
        }
    }
}
