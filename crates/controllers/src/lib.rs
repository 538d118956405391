//! Observe, decide, act: one folder per controller.
