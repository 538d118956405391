//! Answers that are good for a while.

use std::{collections::BTreeMap, future::Future, sync::Arc};

use clock::Clock;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

/// Values that expire. Who asks for a key that is being fetched waits for that answer, and for nobody else's.
pub struct Cache<K, V> {
    clock: Arc<dyn Clock>,
    ttl: SignedDuration,
    entries: Mutex<BTreeMap<K, Entry<V>>>,
    fetching: Mutex<BTreeMap<K, Arc<tokio::sync::Mutex<()>>>>,
}

struct Entry<V> {
    value: V,
    until: Timestamp,
}

impl<K: Ord + Clone, V: Clone> Cache<K, V> {
    pub fn new(clock: Arc<dyn Clock>, ttl: SignedDuration) -> Self {
        Self {
            clock,
            ttl,
            entries: Mutex::default(),
            fetching: Mutex::default(),
        }
    }

    pub fn get(&self, key: &K) -> Option<V> {
        let now = self.clock.now();
        let entries = self.entries.lock();
        let entry = entries.get(key).filter(|entry| now < entry.until)?;
        Some(entry.value.clone())
    }

    pub fn put(&self, key: K, value: V) {
        self.put_for(key, value, self.ttl);
    }

    pub fn put_for(&self, key: K, value: V, ttl: SignedDuration) {
        let now = self.clock.now();
        let until = now.checked_add(ttl).unwrap_or(Timestamp::MAX);
        let mut entries = self.entries.lock();
        // Entries that nobody asks for any more go when others come.
        entries.retain(|_, entry| now < entry.until);
        entries.insert(key, Entry { value, until });
    }

    pub fn remove(&self, key: &K) -> Option<V> {
        self.entries.lock().remove(key).map(|entry| entry.value)
    }

    /// Entries that are still good, in the order of their keys.
    pub fn live(&self) -> Vec<(K, V)> {
        let now = self.clock.now();
        let entries = self.entries.lock();
        let live = entries.iter().filter(|(_, entry)| now < entry.until);
        live.map(|(key, entry)| (key.clone(), entry.value.clone())).collect()
    }

    /// The cached value, or the one that `fetch` answers with. Errors are not remembered.
    pub async fn get_or_fetch<E>(&self, key: K, fetch: impl Future<Output = Result<V, E>>) -> Result<V, E> {
        if let Some(value) = self.get(&key) {
            return Ok(value);
        }
        let turn = self.fetching.lock().entry(key.clone()).or_default().clone();
        let _turn = turn.lock().await;
        if let Some(value) = self.get(&key) {
            return Ok(value);
        }
        let fetched = fetch.await;
        self.fetching.lock().remove(&key);
        let value = fetched?;
        self.put(key, value.clone());
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use clock::VirtualClock;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn values_expire_and_concurrent_askers_share_one_answer() {
        let clock = Arc::new(VirtualClock::starting_at(Timestamp::UNIX_EPOCH));
        let cache: Cache<&str, usize> = Cache::new(clock, SignedDuration::from_mins(1));
        let calls = AtomicUsize::new(0);
        let fetch = || async {
            tokio::time::sleep(std::time::Duration::from_secs(5)).await;
            Ok::<_, ()>(calls.fetch_add(1, Ordering::SeqCst))
        };
        let both = futures::join!(cache.get_or_fetch("a", fetch()), cache.get_or_fetch("a", fetch()));
        assert_eq!(both, (Ok(0), Ok(0)));
        tokio::time::advance(std::time::Duration::from_secs(61)).await;
        assert_eq!(cache.get(&"a"), None);
        assert_eq!(cache.get_or_fetch("a", fetch()).await, Ok(1));
        assert_eq!(cache.get_or_fetch("b", async { Err("no") }).await, Err("no"));
        assert_eq!(cache.remove(&"a"), Some(1));
        assert!(cache.live().is_empty());
    }
}
