//! Kubelet settings move from pools to classes. A class has one set of them, so pools of one class that differ need
//! classes of their own.

use std::collections::BTreeMap;

use api::aws::KubeletConfiguration;
use sha2::{Digest as _, Sha256};

/// A pool and what it wants of its class.
#[derive(Clone, Debug, PartialEq)]
pub struct Wish {
    pub pool: String,
    pub class: String,
    pub kubelet: Option<KubeletConfiguration>,
    /// The pool was v1 already and stays with its class as it is.
    pub settled: bool,
}

/// Which class has which settings, and which pools move.
#[derive(Debug, Default, PartialEq)]
pub struct Placement {
    /// Settings by the name of an existing class.
    pub classes: BTreeMap<String, Option<KubeletConfiguration>>,
    /// Classes to be made as copies of others.
    pub copies: Vec<Copy>,
    /// The new class of each pool that moves.
    pub moved: BTreeMap<String, String>,
}

#[derive(Debug, PartialEq)]
pub struct Copy {
    pub of: String,
    pub name: String,
    pub kubelet: Option<KubeletConfiguration>,
    pub pools: Vec<String>,
}

/// The most frequent settings keep the class; on a tie those of the pool that comes first by name.
pub fn place(wishes: &[Wish]) -> Placement {
    let mut placement = Placement::default();
    let mut classes: BTreeMap<&str, Vec<&Wish>> = BTreeMap::new();
    for wish in wishes {
        classes.entry(&wish.class).or_default().push(wish);
    }
    for (class, wishes) in classes {
        let mut groups: BTreeMap<String, Vec<&Wish>> = BTreeMap::new();
        for wish in wishes {
            groups.entry(canonical(wish.kubelet.as_ref())).or_default().push(wish);
        }
        let mut groups: Vec<(String, Vec<&Wish>)> = groups.into_iter().collect();
        for (_, group) in &mut groups {
            group.sort_by(|a, b| a.pool.cmp(&b.pool));
        }
        groups.sort_by_key(|(_, group)| {
            let settled = group.iter().any(|wish| wish.settled);
            (!settled, usize::MAX - group.len(), group[0].pool.clone())
        });
        for (rank, (text, group)) in groups.into_iter().enumerate() {
            let kubelet = group[0].kubelet.clone();
            if rank == 0 {
                placement.classes.insert(class.to_owned(), kubelet);
                continue;
            }
            let name = format!("{class}-{}", hash8(&text));
            let pools: Vec<String> = group.iter().map(|wish| wish.pool.clone()).collect();
            placement
                .moved
                .extend(pools.iter().map(|pool| (pool.clone(), name.clone())));
            placement.copies.push(Copy {
                of: class.to_owned(),
                name,
                kubelet,
                pools,
            });
        }
    }
    placement
}

/// Settings as JSON with sorted keys; none at all is an empty object.
fn canonical(kubelet: Option<&KubeletConfiguration>) -> String {
    let value = kubelet.and_then(|kubelet| serde_json::to_value(kubelet).ok());
    value.map_or_else(|| "{}".to_owned(), |value| value.to_string())
}

fn hash8(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

    use super::*;

    fn wish(pool: &str, max_pods: Option<i32>) -> Wish {
        let kubelet = max_pods.map(|max_pods| KubeletConfiguration {
            max_pods: Some(IntOrString::Int(max_pods)),
            ..KubeletConfiguration::default()
        });
        Wish {
            pool: pool.to_owned(),
            class: "t".to_owned(),
            kubelet,
            settled: false,
        }
    }

    fn max_pods(placement: &Placement) -> Option<IntOrString> {
        placement.classes["t"]
            .as_ref()
            .and_then(|kubelet| kubelet.max_pods.clone())
    }

    #[test]
    fn equal_settings_share_the_class() {
        let placement = place(&[wish("a", Some(10)), wish("b", Some(10))]);
        assert!(placement.copies.is_empty());
        assert_eq!(max_pods(&placement), Some(IntOrString::Int(10)));
    }

    #[test]
    fn the_most_frequent_settings_keep_the_class_and_no_settings_are_settings_too() {
        let placement = place(&[wish("a", Some(10)), wish("b", None), wish("c", None)]);
        assert_eq!(placement.classes["t"], None);
        assert_eq!(placement.moved["a"], placement.copies[0].name);
    }

    #[test]
    fn on_a_tie_the_first_name_keeps_the_class_and_the_copy_is_named_by_its_settings() {
        let placement = place(&[wish("z", Some(20)), wish("a", Some(10))]);
        assert_eq!(max_pods(&placement), Some(IntOrString::Int(10)));
        // sha256 of {"maxPods":20}
        assert_eq!(placement.copies[0].name, format!("t-{}", hash8("{\"maxPods\":20}")));
        assert_eq!(placement.copies[0].pools, ["z"]);
    }

    #[test]
    fn a_pool_that_is_v1_already_does_not_move() {
        let mut settled = wish("z", Some(20));
        settled.settled = true;
        let placement = place(&[wish("a", Some(10)), wish("b", Some(10)), settled]);
        assert!(!placement.moved.contains_key("z"));
        assert_eq!(placement.copies[0].pools, ["a", "b"]);
    }
}
