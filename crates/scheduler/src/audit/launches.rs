//! Launches: whatever of its instance types a machine turns out to be, its pods and daemons have what they need.

mod shop;

use std::collections::BTreeSet;

use model::{CapacityType, LabelValue, Pod, Pool, Requirements, vocabulary};

pub(super) use self::shop::values_of;
use self::shop::{Display, Shop};
use super::{Audit, Place, Violation, by_shape, is_content, requests, storage};
use crate::plan::{Launch, Plan};

pub(super) fn check(audit: &mut Audit<'_>, plan: &Plan) {
    let mut shop = Shop::new(audit.snapshot, plan);
    for (index, launch) in plan.launches.iter().enumerate() {
        audit.launch(index, launch, &mut shop);
    }
}

impl<'a> Audit<'a> {
    fn launch<'p>(&mut self, index: usize, launch: &'p Launch, shop: &mut Shop<'a, 'p>) {
        let place = Place::Launch(index);
        let Some(pool) = self.snapshot.pools.get(&launch.pool) else {
            self.broken.push(Violation::UnknownPool {
                launch: index,
                pool: launch.pool.clone(),
            });
            return;
        };
        let open = pool.ready && !pool.is_static() && pool.deleting.is_none();
        self.check(open, || Violation::ClosedPool {
            launch: index,
            pool: launch.pool.clone(),
        });
        self.within_pool(index, launch, pool);
        self.check(!launch.pods.is_empty(), || Violation::Purposeless { launch: index });
        let pods = self.pods(&place, &launch.pods);
        for pod in by_shape(&pods) {
            self.tolerates(&place, pod, &pool.template.taints);
            self.labels(&place, launch, pod);
        }
        for pod in pods.iter().filter(|pod| !pod.shape.volumes.is_empty()) {
            let near = |term: &Requirements| launch.requirements.guarantee(term, &self.snapshot.vocabulary);
            let broken = storage::check(self.snapshot, &place, pod, near);
            self.broken.extend(broken);
        }
        self.check(!launch.instance_types.is_empty(), || Violation::NothingToBuy {
            launch: index,
        });
        let display = shop.display(launch);
        self.goods(index, launch, &pods, &display);
        self.choice(index, launch, &display);
        self.variety(index, launch, &display);
    }

    /// What the claim will say does not go beyond what the pool says. A held reservation replaces the capacity type.
    fn within_pool(&mut self, index: usize, launch: &Launch, pool: &Pool) {
        let template = &pool.template;
        let kept = template.requirements.iter().all(|asked| {
            if asked.key == vocabulary::INSTANCE_TYPE {
                return launch.instance_types.iter().all(|name| asked.has(name.as_str()));
            }
            let ours = launch.requirements.get(asked.key.as_str());
            let there = !ours.is_empty() || asked.operator().accepts_absence();
            there && ours.intersect(&asked.values) == *ours
        });
        let labelled = template
            .labels
            .iter()
            .all(|(key, value)| launch.labels.get(key).is_some_and(|ours| ours == value));
        self.check(kept && labelled, || Violation::OutsidePool {
            launch: index,
            pool: launch.pool.clone(),
        });
    }

    fn labels(&mut self, place: &Place, launch: &Launch, pod: &Pod) {
        let vocabulary = &self.snapshot.vocabulary;
        let content = is_content(pod, |demand| launch.requirements.guarantee(demand, vocabulary));
        self.check(content, || Violation::WrongLabels {
            place: place.clone(),
            pod: pod.key.clone(),
        });
    }

    /// Each of the types that the launch may become can be bought, and everything has room and ports on it.
    fn goods(&mut self, index: usize, launch: &Launch, pods: &[&Pod], display: &Display<'_, '_>) {
        let place = Place::Launch(index);
        let not_for_sale = |name: &model::InstanceTypeName| Violation::NotForSale {
            launch: index,
            instance_type: name.clone(),
        };
        self.broken.extend(display.unsold().iter().map(not_for_sale));
        // The claim's own list may not admit more than what was checked.
        if let (false, Some(first)) = (display.exact, launch.instance_types.first()) {
            self.broken.push(not_for_sale(first));
        }
        self.ports(&place, pods, &[]);
        for ports in display.daemon_ports() {
            let clash = pods.iter().find(|pod| {
                let wanted = &pod.shape.host_ports;
                wanted
                    .iter()
                    .any(|port| ports.iter().any(|other| port.conflicts_with(other)))
            });
            if let Some(pod) = clash {
                self.broken.push(Violation::PortTaken {
                    place: place.clone(),
                    pod: pod.key.clone(),
                });
            }
        }
        let asked = requests(pods);
        if display.surely_holds(&asked) {
            return;
        }
        for goods in display.goods() {
            let all = asked.clone().plus(&goods.daemons);
            let roomy = goods.rooms.iter().any(|room| all.fits(room));
            self.check(roomy || goods.rooms.is_empty(), || Violation::Overfull {
                place: place.clone(),
                instance_type: Some(goods.kind.name.clone()),
                short: goods.rooms.first().map(|room| all.shortfall(room)).unwrap_or_default(),
            });
        }
    }

    /// What would be bought is on the list and on sale; a reservation only for those who have a place in it.
    fn choice(&mut self, index: usize, launch: &Launch, display: &Display<'_, '_>) {
        let choice = &launch.choice;
        let goods = display.goods().find(|goods| goods.kind.name == choice.instance_type);
        let offered = goods.is_some_and(|goods| {
            goods.kind.offerings_within(&launch.requirements).any(|offering| {
                offering.zone == choice.zone
                    && offering.capacity_type == choice.capacity_type
                    && offering.price.total_cmp(&choice.price).is_eq()
            })
        });
        let promised = choice.capacity_type != CapacityType::Reserved || is_reserved(launch);
        self.check(offered && promised, || Violation::NotForSale {
            launch: index,
            instance_type: choice.instance_type.clone(),
        });
    }

    fn variety(&mut self, index: usize, launch: &Launch, display: &Display<'_, '_>) {
        for requirement in launch.requirements.iter() {
            let Some(least) = requirement.min_values else { continue };
            let kinds = display.goods().map(|goods| goods.kind);
            let values: BTreeSet<&LabelValue> = kinds
                .filter_map(|kind| kind.requirements.get(requirement.key.as_str()).listed())
                .flatten()
                .collect();
            self.check(values.len() >= least as usize, || Violation::TooAlike {
                launch: index,
                key: requirement.key.clone(),
            });
        }
    }
}

/// Whether the machine has to be one of a reservation.
pub(super) fn is_reserved(launch: &Launch) -> bool {
    let capacity = launch.requirements.get(vocabulary::CAPACITY_TYPE);
    capacity
        .single()
        .is_some_and(|only| *only == CapacityType::Reserved.as_str())
}
