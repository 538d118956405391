//! Several nodes that come in the place of one or of many.

use expect_test::expect;

use super::{check, pass_of, shown};
use crate::Settings;

/// No two of the three could be exchanged for less: two nodes for six processors cost more than the two that have them.
const THREE_FOR_TWO: &str = "
    type three cpu=3 memory=12Gi price=0.5
    type five cpu=5 memory=20Gi price=0.55
    pool general
    node a pool=general type=three
    node b pool=general type=three
    node c pool=general type=three
    pod a2 cpu=2 on=a
    pod a1 cpu=1 on=a
    pod b2 cpu=2 on=b
    pod b1 cpu=1 on=b
    pod c2 cpu=2 on=c
    pod c1 cpu=1 on=c\n";

#[test]
fn three_nodes_are_exchanged_for_two_that_are_cheaper_together() {
    check(
        THREE_FOR_TWO,
        &expect![[r#"
            consolidate a,b,c -> five/a/on-demand -> five/a/on-demand saves 0.40
        "#]],
    );
    check(
        &THREE_FOR_TWO.replace("price=0.55", "price=0.74"),
        &expect![[r#"
            a stays: it costs $0.5000 an hour and a replacement would cost $0.5000
            b stays: it costs $0.5000 an hour and a replacement would cost $0.5000
            c stays: it costs $0.5000 an hour and a replacement would cost $0.5000
        "#]],
    );
}

#[test]
fn one_node_is_exchanged_for_two() {
    let situation = |small: &str| {
        format!(
            "type small cpu=2 memory=8Gi price={small}
             type large cpu=16 memory=64Gi price=0.8
             pool general
             node a pool=general type=large
             pod one cpu=1500m on=a
             pod two cpu=1500m on=a"
        )
    };
    check(
        &situation("0.2"),
        &expect![[r#"
            consolidate a -> small/a/on-demand -> small/a/on-demand saves 0.40
        "#]],
    );
    check(
        &situation("0.41"),
        &expect![[r#"
            a stays: it costs $0.8000 an hour and a replacement would cost $0.8000
        "#]],
    );
}

/// DI-A18: what is weighed against the disruption is the saving that is left when every replacement is paid.
#[test]
fn a_score_counts_what_all_replacements_cost() {
    let situation = THREE_FOR_TWO.replace("pool general", "pool general policy=Balanced");
    let cheap = situation.replace("price=0.55", "price=0.3");
    let pass = pass_of(&Settings::default(), &cheap);
    let scores: Vec<_> = pass.commands.iter().flat_map(|command| &command.scores).collect();
    assert_eq!(scores.len(), 1, "{}", shown(&pass));
    assert!((scores[0].saving - 0.9).abs() < 1e-9, "{scores:?}");
    assert!((scores[0].score - 0.6).abs() < 1e-9, "{scores:?}");
    // With one of the two unpaid it would be more than half.
    let pass = pass_of(&Settings::default(), &situation);
    assert!(pass.commands.is_empty(), "{}", shown(&pass));
    let worst = pass.refused.iter().find(|score| score.disruption == 9.0);
    assert!(
        worst.is_some_and(|score| (score.saving - 0.4).abs() < 1e-9),
        "{:?}",
        pass.refused
    );
}
