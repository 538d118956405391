//! Reads the history: keeps the scene, writes the timeline, asks the checkers.

use std::sync::Arc;

use clock::Clock;
use jiff::Timestamp;
use provider_sim::{Catalog, SimCloud};

use crate::{
    checkers::{Jury, Moment},
    history::{Entry, History, Item},
    mirror::Mirror,
    story::Record,
    tally::Tally,
    timeline::Timeline,
};

pub struct Observer {
    pub history: History,
    /// The cluster as it was after the last entry that was read.
    pub scene: Mirror,
    pub cloud: SimCloud,
    catalog: Arc<Catalog>,
    pub jury: Jury,
    pub timeline: Timeline,
    pub record: Record,
    pub tally: Tally,
}

impl Observer {
    pub fn new(history: History, cloud: SimCloud, catalog: Arc<Catalog>, clock: &dyn Clock) -> Self {
        Self {
            history,
            scene: Mirror::new(Vec::new(), None),
            cloud,
            catalog,
            jury: Jury::default(),
            timeline: Timeline::starting_at(clock.now()),
            record: Record::default(),
            tally: Tally::default(),
        }
    }

    /// Reads everything that happened before this moment.
    pub fn catch_up(&mut self, now: Timestamp) {
        for Entry { at, item, .. } in self.history.take_before(now) {
            let moment = Moment {
                scene: &self.scene,
                cloud: &self.cloud,
                catalog: &self.catalog,
                now: at,
            };
            match item {
                Item::Note { subject, what } => {
                    self.jury.noted(&subject, &moment);
                    self.timeline.note(at, subject, what);
                }
                Item::Deed(deed) => {
                    self.tally.count(&deed);
                    self.jury.called(&deed, &moment);
                }
                Item::Told(told) => {
                    for seen in told.teach(&self.scene) {
                        self.timeline.see(at, &seen);
                        self.record.see(at, &seen);
                        self.jury.saw(&seen, &moment);
                    }
                }
            }
        }
    }

    /// Asks for the rules that hold at rest.
    pub fn rest(&mut self, now: Timestamp) {
        let moment = Moment {
            scene: &self.scene,
            cloud: &self.cloud,
            catalog: &self.catalog,
            now,
        };
        self.jury.at_rest(&moment);
    }

    pub fn moment(&self, now: Timestamp) -> Moment<'_> {
        Moment {
            scene: &self.scene,
            cloud: &self.cloud,
            catalog: &self.catalog,
            now,
        }
    }
}
