//! Machines that are being planned: still open as to which of several instance types they will be.

use model::pod::HostPort;

use crate::{
    amounts::Amounts, bits::Bits, dra::Allocation, limits::Charge, reservations::Held, states::State, variety::Variety,
};

/// A machine that a round opens.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    /// Different for every machine that a round opens.
    pub id: usize,
    pub template: usize,
    pub state: State,
    /// What of the pool's market it may still become.
    pub rows: Bits,
    /// What its pods ask for.
    pub used: Amounts,
    pub ports: Vec<HostPort>,
    pub pods: Vec<Seat>,
    /// Reservations in which it has a place.
    pub held: Held,
    /// What it counts against the pool's limits.
    pub charge: Charge,
    /// The pool's demand for variety, where it had to be lowered.
    pub lowered: Option<Variety>,
    /// Some of its pods have been promised devices.
    pub has_devices: bool,
}

/// A pod on a planned machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seat {
    pub member: usize,
    /// Which of its wishes are met.
    pub variant: usize,
    /// Which of the places of its volumes was chosen.
    pub volume: usize,
}

/// That a pod may join a machine, and what the machine is then.
#[derive(Clone, Debug)]
pub(crate) struct Admission {
    pub state: State,
    pub rows: Bits,
    pub volume: usize,
    pub reserves: Held,
    pub lowered: Option<Variety>,
    /// The devices that the pod gets.
    pub devices: Option<Allocation>,
}

/// Why a pod may not join a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rejection {
    /// For good: machines do not get wider or emptier.
    Closed,
    /// As things are now; what others do may change it.
    NotNow,
    /// All reserved capacity that would do is promised to others.
    Reserved,
}

impl Open {
    pub fn new(id: usize, template: usize, state: State, rows: Bits, dims: usize) -> Self {
        Self {
            id,
            template,
            state,
            rows,
            used: Amounts::from_elem(0, dims),
            ports: Vec::new(),
            pods: Vec::new(),
            held: Held::new(),
            charge: Charge::default(),
            lowered: None,
            has_devices: false,
        }
    }
}
