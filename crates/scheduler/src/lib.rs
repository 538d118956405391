//! Places pods: a snapshot and a round in, a plan out.
