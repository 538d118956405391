//! Decides which nodes may go, and in what order.
