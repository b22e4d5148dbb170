//! Sells stock.
fn main() {}
