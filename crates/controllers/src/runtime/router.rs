//! Tells every controller which of its keys a change concerns.

use std::sync::Arc;

use state::{Changes, Event, Index, View};
use tokio::sync::mpsc;

use super::Reconcile;

type Route = Box<dyn Fn(&Event, &View) + Send + Sync>;

/// Reads the changes of an index and hands out keys. One for all controllers: they see changes in one order.
pub struct Router {
    index: Arc<Index>,
    changes: Changes,
    routes: Vec<Route>,
}

/// How many changes are handed out before others get a turn.
const BATCH: usize = 256;

impl Router {
    pub fn new(index: Arc<Index>) -> Self {
        Self {
            changes: index.subscribe(),
            index,
            routes: Vec::new(),
        }
    }

    /// Sends the keys of one controller, from the first change on.
    pub fn route<R: Reconcile>(&mut self, controller: Arc<R>, sender: mpsc::UnboundedSender<R::Key>) {
        self.routes.push(Box::new(move |event, view| {
            controller.keys(event, view, &mut |key| {
                // A worker that is gone needs no keys.
                let _ = sender.send(key);
            });
        }));
    }

    /// Runs until it is dropped.
    pub async fn run(mut self) {
        let mut batch = Vec::with_capacity(BATCH);
        while self.changes.recv_many(&mut batch, BATCH).await > 0 {
            let view = self.index.view();
            for event in batch.drain(..) {
                for route in &self.routes {
                    route(&event, &view);
                }
            }
        }
    }
}
