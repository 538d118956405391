//! Builders and harnesses that tests of several crates share.
