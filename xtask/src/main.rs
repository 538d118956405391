//! Generation, tidy checks and release chores.

fn main() {}
