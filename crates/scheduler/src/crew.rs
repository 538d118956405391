//! The daemons that come along with a pool's machines, and what they take of each.

use model::{
    InstanceType, Offering, Pool, Requirements, Resources, Snapshot,
    pod::{HostPort, PodShape},
    requirements::AllowUndefined,
};

use crate::rules::daemon_runs_on;

/// The daemons that run on machines of one pool.
pub(crate) struct Crew<'d>(Vec<Daemon<'d>>);

struct Daemon<'d> {
    shape: &'d PodShape,
    /// The ways it can be content on the pool's machines.
    ways: Vec<Requirements>,
}

/// What the daemons of a machine take.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Load {
    pub requests: Resources,
    pub ports: Vec<HostPort>,
}

impl<'d> Crew<'d> {
    /// Those of the daemons that run on machines of the pool with these labels.
    pub fn new(snapshot: &Snapshot, pool: &Pool, labels: &Requirements, daemons: &[&'d PodShape]) -> Self {
        let allow = AllowUndefined::WellKnown(&snapshot.vocabulary);
        let runs = daemons
            .iter()
            .filter(|daemon| daemon_runs_on(daemon, &pool.template.taints, labels, allow));
        let with_ways = runs.map(|daemon| {
            let mut ways = Requirements::alternatives_of_pod(daemon);
            ways.retain(|way| labels.is_compatible(way, allow));
            Daemon { shape: daemon, ways }
        });
        Self(with_ways.collect())
    }

    /// What daemons take of a machine of this type, wherever and however it is bought.
    pub fn on(&self, kind: &InstanceType) -> Load {
        load(self.0.iter().filter(|daemon| daemon.runs_on(kind)))
    }

    /// What daemons take at most of a machine of this type that is bought within these requirements.
    pub fn most_within(&self, kind: &InstanceType, requirements: &Requirements) -> Resources {
        if !self.differ_on(kind) {
            return self.on(kind).requests;
        }
        let mut most = Resources::default();
        for offering in kind
            .offerings
            .iter()
            .filter(|offering| offering.admitted_by(requirements))
        {
            most.max_with(&self.under(kind, offering).requests);
        }
        most
    }

    /// Whether other daemons may run under some offerings of a type than under others. Mostly not, and then it need not be
    /// asked offering by offering.
    fn differ_on(&self, kind: &InstanceType) -> bool {
        let mut aboard = self.0.iter().filter(|daemon| daemon.runs_on(kind));
        aboard.any(|daemon| daemon.chooses_among(&kind.offerings))
    }

    fn under(&self, kind: &InstanceType, offering: &Offering) -> Load {
        load(self.0.iter().filter(|daemon| daemon.runs_under(kind, offering)))
    }

    /// What daemons take under each offering of a type, in the order of the offerings; nothing where it is the same under all.
    ///
    /// Nothing, too, where they take more than there is under one of them: a daemon that is too large for the machines it
    /// asks for is more likely a mistake than a reason to buy elsewhere, and upstream buys no such type either.
    pub fn by_offering(&self, kind: &InstanceType) -> Vec<Load> {
        if !self.differ_on(kind) {
            return Vec::new();
        }
        let loads: Vec<Load> = kind
            .offerings
            .iter()
            .map(|offering| self.under(kind, offering))
            .collect();
        let mut both = kind.offerings.iter().zip(&loads);
        let overdrawn =
            both.any(|(offering, load)| kind.allocatable_under(offering).minus(&load.requests).is_overdrawn());
        if overdrawn || loads.windows(2).all(|pair| pair[0] == pair[1]) {
            return Vec::new();
        }
        loads
    }
}

impl Daemon<'_> {
    fn runs_on(&self, kind: &InstanceType) -> bool {
        self.ways.iter().any(|way| kind.requirements.overlaps(way))
    }

    fn runs_under(&self, kind: &InstanceType, offering: &Offering) -> bool {
        let content = |way: &Requirements| kind.requirements.overlaps(way) && offering.requirements.overlaps(way);
        self.ways.iter().any(content)
    }

    /// Whether it asks for anything that offerings decide, like the zone.
    fn chooses_among(&self, offerings: &[Offering]) -> bool {
        let asked = || self.ways.iter().flat_map(Requirements::iter);
        asked().any(|asked| {
            offerings
                .iter()
                .any(|offering| offering.requirements.contains(asked.key.as_str()))
        })
    }
}

fn load<'c, 'd: 'c>(daemons: impl Iterator<Item = &'c Daemon<'d>>) -> Load {
    let mut load = Load::default();
    for daemon in daemons {
        load.requests.add_assign(&daemon.shape.requests);
        load.ports.extend(daemon.shape.host_ports.iter().cloned());
    }
    load
}
