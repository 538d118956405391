//! A simulated cluster around the production controllers: kubelets, binder, workloads, clock, seed, faults, checkers.
