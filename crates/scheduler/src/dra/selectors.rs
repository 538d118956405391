//! Conditions on devices, each read once and asked once about each device.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use model::dra::Device;

use super::cel::Condition;

/// What has been read and asked. It only ever remembers, so sharing it changes no answer.
#[derive(Debug, Default)]
pub(super) struct Selectors(Mutex<Memory>);

#[derive(Debug, Default)]
struct Memory {
    conditions: BTreeMap<Arc<str>, Result<Arc<Condition>, String>>,
    verdicts: BTreeMap<Question, Verdict>,
}

/// The addresses of condition and device, which are kept here so that no address is used twice, and the driver.
type Question = (usize, usize, Arc<str>);

#[derive(Debug)]
struct Verdict {
    _device: Arc<Device>,
    holds: bool,
}

impl Selectors {
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn read(&self, expression: &Arc<str>) -> Result<Arc<Condition>, String> {
        let mut memory = self.memory();
        let known = memory.conditions.entry(expression.clone());
        known
            .or_insert_with(|| Condition::read(expression).map(Arc::new))
            .clone()
    }

    /// Whether all conditions hold for the device.
    pub fn hold(&self, conditions: &[Arc<Condition>], driver: &Arc<str>, device: &Arc<Device>) -> bool {
        let mut memory = self.memory();
        conditions.iter().all(|condition| {
            let addresses = (Arc::as_ptr(condition).addr(), Arc::as_ptr(device).addr());
            let key = (addresses.0, addresses.1, driver.clone());
            let ask = || Verdict {
                _device: device.clone(),
                holds: condition.holds(driver, device),
            };
            memory.verdicts.entry(key).or_insert_with(ask).holds
        })
    }
}
