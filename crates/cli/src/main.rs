//! The program karpenter.

fn main() {}
