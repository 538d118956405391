//! What section 15.23 of the scheduling rows says, on small fixtures. A first fit without resources stands in for the
//! solver: machines first, then planned nodes, then a new one.

mod claims;
mod fixture;
mod hosts;
mod search;
mod sharing;

use expect_test::Expect;

use self::fixture::Fixture;

#[track_caller]
fn check(fixture: &Fixture, pods: &[&str], expected: Expect) {
    expected.assert_eq(&fixture.placed(pods));
}
