//! The arithmetic of a rolling update: how large each replica set of a deployment may be next.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// A replica set as the arithmetic sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub wanted: i32,
    pub available: i32,
}

/// How far a rollout may stray from the wanted size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slack {
    pub surge: i32,
    pub unavailable: i32,
}

/// A number, or a share of `total` in percent.
pub fn resolve(value: Option<&IntOrString>, total: i32, round_up: bool) -> Option<i32> {
    match value? {
        IntOrString::Int(number) => Some(*number),
        IntOrString::String(text) => {
            let percent: i64 = text.strip_suffix('%')?.parse().ok()?;
            let share = percent * i64::from(total);
            let share = if round_up {
                (share + 99).div_euclid(100)
            } else {
                share.div_euclid(100)
            };
            i32::try_from(share).ok()
        }
    }
}

impl Slack {
    /// 25 % each unless stated. A rollout that may neither exceed nor miss the size could never move, so one pod may
    /// be missing then.
    pub fn of(surge: Option<&IntOrString>, unavailable: Option<&IntOrString>, replicas: i32) -> Self {
        let quarter = IntOrString::String("25%".into());
        let surge = resolve(Some(surge.unwrap_or(&quarter)), replicas, true).unwrap_or(0);
        let unavailable = resolve(Some(unavailable.unwrap_or(&quarter)), replicas, false).unwrap_or(0);
        match (surge, unavailable) {
            (0, 0) => Self {
                surge: 0,
                unavailable: 1,
            },
            (surge, unavailable) => Self { surge, unavailable },
        }
    }
}

/// The next sizes of the new set and of the old ones, oldest first.
pub fn next_sizes(replicas: i32, slack: Slack, new: Size, old: &[Size]) -> (i32, Vec<i32>) {
    let sum = |sizes: &[Size], of: fn(&Size) -> i32| sizes.iter().map(of).sum::<i32>();
    let total = new.wanted + sum(old, |size| size.wanted);
    let room = (replicas + slack.surge - total).max(0);
    let next_new = if new.wanted >= replicas {
        replicas
    } else {
        replicas.min(new.wanted + room)
    };

    let least_available = replicas - slack.unavailable;
    let new_missing = (next_new - new.available).max(0);
    let total = next_new + sum(old, |size| size.wanted);
    let mut may_go = (total - least_available - new_missing).max(0);
    let mut next_old: Vec<i32> = old.iter().map(|size| size.wanted).collect();
    // Pods that serve nobody go first: that costs no availability.
    for (next, size) in next_old.iter_mut().zip(old) {
        let gone = (*next - size.available).clamp(0, may_go);
        *next -= gone;
        may_go -= gone;
    }
    let available = new.available.min(next_new) + sum(old, |size| size.available);
    let mut may_go = may_go.min((available - least_available).max(0));
    for next in &mut next_old {
        let gone = (*next).clamp(0, may_go);
        *next -= gone;
        may_go -= gone;
    }
    (next_new, next_old)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(wanted: i32, available: i32) -> Size {
        Size { wanted, available }
    }

    #[test]
    fn percentages_round_up_for_surge_and_down_for_absence() {
        assert_eq!(
            Slack::of(None, None, 10),
            Slack {
                surge: 3,
                unavailable: 2
            }
        );
        assert_eq!(
            Slack::of(None, None, 1),
            Slack {
                surge: 1,
                unavailable: 0
            }
        );
        let zero = IntOrString::Int(0);
        assert_eq!(
            Slack::of(Some(&zero), Some(&zero), 5),
            Slack {
                surge: 0,
                unavailable: 1
            }
        );
    }

    #[test]
    fn a_rollout_never_exceeds_the_surge_and_never_undercuts_the_absence() {
        for replicas in 1..9 {
            for (surge, unavailable) in [(0, 1), (1, 0), (2, 3)] {
                let slack = Slack { surge, unavailable };
                let (mut new, mut old) = (size(0, 0), [size(replicas, replicas)]);
                for _ in 0..100 {
                    let (next_new, next_old) = next_sizes(replicas, slack, new, &old);
                    assert!(
                        next_new + next_old[0] <= replicas + surge,
                        "{replicas} {slack:?}: {next_new} {next_old:?}"
                    );
                    let available = new.available.min(next_new) + next_old[0].min(old[0].available);
                    assert!(
                        available >= replicas - unavailable,
                        "{replicas} {slack:?}: {available} available"
                    );
                    old = [size(next_old[0], next_old[0])];
                    new = size(next_new, (new.available + 1).min(next_new));
                }
                assert_eq!((new.wanted, old[0].wanted), (replicas, 0), "{slack:?} comes to an end");
            }
        }
    }

    #[test]
    fn old_pods_that_never_became_available_go_first() {
        let slack = Slack {
            surge: 1,
            unavailable: 0,
        };
        let (new, old) = next_sizes(3, slack, size(0, 0), &[size(3, 1)]);
        assert_eq!(
            (new, old),
            (1, vec![3]),
            "nothing may go while the new pod is missing and two old ones are, too"
        );
        let (new, old) = next_sizes(3, slack, size(1, 1), &[size(3, 1)]);
        assert_eq!((new, old), (1, vec![2]));
    }
}
