//! What people are told about nodes that stay, and about those that go.

use std::collections::BTreeMap;

use api::v1::{NodeClaim, NodePool};
use disruption::{Command, Ledger, Method, Pass, Rejection, Stay, Why, balanced};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use model::{NodeKey, Pod, PoolName, budget::DisruptionReason, pod::DoNotDisrupt, pool::ConsolidationPolicy};
use state::View;
use tracing::{debug, error};

use crate::{
    context::Ctx,
    objects::{about_claim, about_node},
    outbox::{About, Notice},
};

fn abouts(view: &View, key: &NodeKey) -> Vec<About> {
    let Some(machine) = view.snapshot.nodes.get(key) else {
        return Vec::new();
    };
    let claim = match key {
        NodeKey::Claim(name) => view.claims.named(name.as_str()).map(|claim| about_claim(claim)),
        NodeKey::Node(_) => None,
    };
    let node = machine
        .node_name()
        .and_then(|name| view.nodes.named(name.as_str()))
        .map(|node| about_node(node));
    claim.into_iter().chain(node).collect()
}

fn tell(ctx: &Ctx, view: &View, node: &NodeKey, notice: impl Fn(About) -> Notice) {
    for about in abouts(view, node) {
        ctx.outbox.publish(notice(about));
    }
}

/// What every pass says for as long as it is so.
fn mention(ctx: &Ctx, view: &View, node: &NodeKey, notice: impl Fn(About) -> Notice) {
    for about in abouts(view, node) {
        ctx.outbox.mention(notice(about));
    }
}

/// What a pass has found: why nodes stay, what would replace others, how moves were weighed.
pub fn found(ctx: &Ctx, view: &View, pass: &Pass) {
    let mut kept: BTreeMap<(String, &'static str), usize> = BTreeMap::new();
    for stay in &pass.stays {
        staying(ctx, view, stay);
        let machine = view.snapshot.nodes.get(&stay.node);
        let pool = machine.and_then(|machine| machine.pool()).map(|pool| pool.to_string());
        *kept.entry((pool.unwrap_or_default(), stay.why.word())).or_default() += 1;
    }
    ctx.metrics.disruption.staying(kept);
    for command in &pass.commands {
        if command.method == Method::Consolidation && !command.replacements.is_empty() {
            candidate(ctx, view, command);
        }
        approved(ctx, view, command);
    }
    let taken = pass.commands.iter().flat_map(|command| &command.scores);
    for score in taken.chain(&pass.refused) {
        let balanced = score.policy == ConsolidationPolicy::Balanced;
        let policy = match score.policy {
            ConsolidationPolicy::WhenEmpty => "WhenEmpty",
            ConsolidationPolicy::WhenEmptyOrUnderutilized => "WhenEmptyOrUnderutilized",
            ConsolidationPolicy::Balanced => "Balanced",
        };
        let worth = balanced.then_some(score.score);
        ctx.metrics
            .disruption
            .weighed(score.pool.as_str(), policy, score.is_approved(), worth);
        debug!(
            NodePool = %score.pool,
            policy,
            score = score.score,
            approved = score.is_approved(),
            saving = score.saving,
            disruption = score.disruption,
            "pool-price" = score.total.price,
            "pool-disruption" = score.total.disruption,
            "weighed a move"
        );
    }
}

fn staying(ctx: &Ctx, view: &View, stay: &Stay) {
    let machine = view.snapshot.nodes.get(&stay.node);
    let drifted = machine.is_some_and(|machine| machine.has_drifted());
    let message = stay.why.to_string();
    if matches!(stay.why, Why::Blocked(_)) || (drifted && stay.why.blocks_drift()) {
        mention(ctx, view, &stay.node, |about| {
            Notice::normal("DisruptionBlocked", about, message.clone())
        });
    } else if stay.why.is_unconsolidatable() {
        mention(ctx, view, &stay.node, |about| {
            Notice::normal("Unconsolidatable", about, message.clone()).every(SignedDuration::from_mins(15))
        });
    }
}

/// The command as one of its nodes is told of it: nodes of a large command are counted, not listed.
fn command_for(command: &Command, node: &NodeKey) -> String {
    let nodes = match command.nodes.len() {
        0 | 1 => format!("node {node}"),
        count => format!("node {node} and {} more", count - 1),
    };
    let replacements = match command.replacements.len() {
        0 => String::new(),
        1 => " with 1 node".to_owned(),
        count => format!(" with {count} nodes"),
    };
    format!(
        "{} {nodes}{replacements}, saving ${:.2} an hour",
        command.decision(),
        command.saving
    )
}

fn candidate(ctx: &Ctx, view: &View, command: &Command) {
    for node in &command.nodes {
        let text = command_for(command, node);
        tell(ctx, view, node, |about| {
            Notice::normal("ConsolidationCandidate", about, format!("Could {text}")).told_apart_by(text.clone())
        });
    }
}

pub fn rejected(ctx: &Ctx, view: &View, rejection: &Rejection) {
    for node in &rejection.nodes {
        let text = command_for(&rejection.command, node);
        let message = format!("Did not {text}: {} has come in between", rejection.obstacle);
        tell(ctx, view, node, |about| {
            Notice::normal("ConsolidationRejected", about, message.clone()).told_apart_by(message.clone())
        });
    }
}

/// Pools with policy Balanced are told of the commands that they take, or the node that goes alone is.
fn approved(ctx: &Ctx, view: &View, command: &Command) {
    let voted = |score: &&balanced::Score| score.policy == ConsolidationPolicy::Balanced;
    for score in command.scores.iter().filter(voted) {
        let message = worth(score);
        let notice = |about| Notice::normal("ConsolidationApproved", about, message.clone());
        match &command.nodes[..] {
            [only] => tell(ctx, view, only, notice),
            _ => {
                let about = view.pools.named(score.pool.as_str()).map(|pool| about_pool(pool));
                about.into_iter().for_each(|about| ctx.outbox.publish(notice(about)));
            }
        }
    }
}

fn worth(score: &balanced::Score) -> String {
    let share = |part: f64, whole: f64| 100.0 * part / whole;
    format!(
        "A move scores {:.2}, and {:.2} is enough (k=2): it saves {:.1}% of the cost for {:.1}% of the disruption",
        score.score,
        balanced::THRESHOLD,
        share(score.saving, score.total.price),
        share(score.disruption, score.total.disruption),
    )
}

fn about_pool(pool: &NodePool) -> About {
    About::pool(&pool.name_any(), &pool.uid().unwrap_or_default())
}

/// The state of every pool's budget, as metrics; and as an event where it is shut. `unreadable` is what was wrong with
/// budgets the last time, and is in the log already.
pub fn budgets(ctx: &Ctx, view: &View, unreadable: &mut BTreeMap<PoolName, String>, now: Timestamp) {
    let ledger = Ledger::open(&view.snapshot, now);
    let told = std::mem::take(unreadable);
    for (name, page) in ledger.pages() {
        if let Some(problem) = &page.problem {
            if told.get(name) != Some(problem) {
                error!(NodePool = %name, error = %problem, "could not read disruption budgets, so that they allow nothing");
            }
            unreadable.insert(name.clone(), problem.clone());
        }
        for reason in DisruptionReason::ALL {
            let allowed = page.allowed(reason);
            ctx.metrics
                .disruption
                .budget(name.as_str(), reason, allowed, page.disrupting);
            let shut = page.total > 0 && allowed == 0;
            if let Some(pool) = view.pools.named(name.as_str()).filter(|_| shut) {
                let why = page.problem.as_ref().map(|problem| format!(": {problem}"));
                let message = format!(
                    "No allowed disruptions for disruption reason {reason} due to blocking budget{}",
                    why.unwrap_or_default()
                );
                let notice = Notice::normal("DisruptionBlocked", about_pool(pool), message);
                ctx.outbox.publish(
                    notice
                        .told_apart_by(reason.as_str())
                        .every(SignedDuration::from_mins(1)),
                );
            }
        }
    }
}

/// What pods on our nodes say with `karpenter.sh/do-not-disrupt`, where they say more than yes.
pub fn protections(ctx: &Ctx, view: &View, now: Timestamp) {
    let managed = view.snapshot.nodes.values().filter(|machine| machine.is_managed());
    for pod in managed.flat_map(|machine| view.snapshot.pods_of(machine)) {
        if let Some(notice) = protection(pod, now) {
            ctx.outbox.mention(notice);
        }
    }
}

fn protection(pod: &Pod, now: Timestamp) -> Option<Notice> {
    if !pod.is_active() {
        return None;
    }
    let about = About::pod(pod);
    match pod.do_not_disrupt.as_ref()? {
        DoNotDisrupt::Always => None,
        DoNotDisrupt::Invalid(text) => {
            let message = format!(
                "Annotation karpenter.sh/do-not-disrupt={text:?} is neither true nor a duration and protects nothing"
            );
            Some(Notice::warning("InvalidDoNotDisruptAnnotation", about, message.clone()).told_apart_by(message))
        }
        DoNotDisrupt::For(time) => {
            let until = pod.started?.checked_add(*time).ok()?;
            Some(if now < until {
                let message = format!("Protected from voluntary disruption until {until:.0}");
                Notice::normal("DoNotDisruptUntil", about, message.clone()).told_apart_by(message)
            } else {
                let message = format!("Protection from voluntary disruption has ended at {until:.0}");
                Notice::normal("DoNotDisruptGracePeriodElapsed", about, message)
            })
        }
    }
}

/// A replacement that a command waits for.
pub fn waiting(ctx: &Ctx, claim: &NodeClaim, reason: DisruptionReason) {
    let launching = format!("Launching NodeClaim: {reason}");
    ctx.outbox
        .publish(Notice::normal("DisruptionLaunching", about_claim(claim), launching).told_apart_by(reason.as_str()));
    let message = "Waiting on readiness to continue disruption".to_owned();
    ctx.outbox.publish(Notice::normal(
        "DisruptionWaitingReadiness",
        about_claim(claim),
        message,
    ));
}

/// A node that stays because its command came to nothing. One that goes for another reason is told nothing of the kind.
pub fn failed(ctx: &Ctx, view: &View, node: &NodeKey, why: &str) {
    let machine = view.snapshot.nodes.get(node);
    if machine.is_none_or(|machine| machine.is_leaving()) {
        return;
    }
    let message = format!("The node stays, its disruption was taken back: {why}");
    tell(ctx, view, node, |about| {
        Notice::normal("DisruptionBlocked", about, message.clone()).told_apart_by(message.clone())
    });
}

pub fn terminating(ctx: &Ctx, claim: &NodeClaim, node: Option<&Node>, reason: DisruptionReason) {
    let notice = |about, kind| {
        Notice::normal("DisruptionTerminating", about, format!("Disrupting {kind}: {reason}"))
            .told_apart_by(reason.as_str())
    };
    ctx.outbox.publish(notice(about_claim(claim), "NodeClaim"));
    if let Some(node) = node {
        ctx.outbox.publish(notice(about_node(node), "Node"));
    }
}

#[cfg(test)]
mod tests {
    use model::samples;

    use super::*;

    fn reason(do_not_disrupt: DoNotDisrupt, started: i64) -> Option<String> {
        let at = |secs| Timestamp::UNIX_EPOCH + SignedDuration::from_secs(secs);
        let pod = Pod {
            do_not_disrupt: Some(do_not_disrupt),
            started: Some(at(started)),
            ..samples::pod("p")
        };
        protection(&pod, at(1_000)).map(|notice| notice.reason.into())
    }

    /// DI-C35, DI-C36, DI-C37.
    #[test]
    fn a_protection_says_until_when_or_what_is_wrong_with_it() {
        let minute = || DoNotDisrupt::For(SignedDuration::from_mins(1));
        assert_eq!(reason(minute(), 990).as_deref(), Some("DoNotDisruptUntil"));
        assert_eq!(reason(minute(), 900).as_deref(), Some("DoNotDisruptGracePeriodElapsed"));
        assert_eq!(reason(DoNotDisrupt::Always, 990), None);
        assert_eq!(
            reason(DoNotDisrupt::Invalid("soon".to_owned()), 990).as_deref(),
            Some("InvalidDoNotDisruptAnnotation")
        );
    }
}
