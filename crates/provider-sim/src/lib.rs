//! A simulated cloud: a drop-in for the KWOK provider with latency and faults.
