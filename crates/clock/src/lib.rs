//! Time as an argument: the wall clock and the virtual one.
