//! Stories that the playground can play: a list of steps in a YAML file.

use std::{fs, path::Path, time::Duration};

use anyhow::{Context as _, bail};
use serde::Deserialize;

const INFLATE: &str = include_str!("../../../../scenarios/inflate.yaml");

/// A story: what is done to the cluster, and what has to come of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Story {
    pub name: String,
    pub steps: Vec<Step>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Step {
    /// A line for whoever watches.
    Say(String),
    Scale(Scale),
    Await(Await),
    /// Let time pass.
    Wait(Span),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scale {
    pub deployment: String,
    #[serde(default = "default_namespace")]
    pub namespace: String,
    pub replicas: i32,
}

/// What has to be true before the story goes on, and how long it may take in the story's time.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Await {
    /// Exactly so many pods in the default namespace, all of them ready.
    pub pods: Option<usize>,
    /// Exactly so many nodes.
    pub nodes: Option<usize>,
    pub within: Span,
}

/// A length of time as users write it: `90s`, `1h30m`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct Span(pub Duration);

impl TryFrom<String> for Span {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let span: jiff::SignedDuration = text
            .parse()
            .map_err(|_| format!("{text:?} is not a duration: write 90s or 5m"))?;
        Duration::try_from(span)
            .map(Span)
            .map_err(|_| format!("{text:?} is negative"))
    }
}

fn default_namespace() -> String {
    "default".to_owned()
}

impl Story {
    /// A story by its name, or from a file.
    pub fn find(name: &str) -> anyhow::Result<Self> {
        if name == "inflate" {
            return Self::parse(INFLATE, name);
        }
        if !Path::new(name).exists() {
            bail!("scenario {name:?}: there is no story of that name and no such file; known stories: inflate");
        }
        let text = fs::read_to_string(name).with_context(|| format!("scenario {name}: cannot be read"))?;
        Self::parse(&text, name)
    }

    fn parse(text: &str, origin: &str) -> anyhow::Result<Self> {
        let story: Story = serde_saphyr::from_str(text).map_err(|error| {
            // The first line says what and where; the rest draws it.
            let error = error.to_string();
            anyhow::anyhow!("scenario {origin}: {}", error.lines().next().unwrap_or_default())
        })?;
        if story.steps.is_empty() {
            bail!("scenario {origin}: steps: a story needs at least one");
        }
        Ok(story)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_known_story_can_be_read() {
        let story = Story::find("inflate").expect("it is embedded");
        assert!(matches!(
            story.steps.last(),
            Some(Step::Await(Await { nodes: Some(0), .. }))
        ));
    }

    #[test]
    fn mistakes_are_told_in_one_line() {
        let unknown = Story::find("no-such-story").expect_err("nobody wrote it");
        assert!(unknown.to_string().contains("known stories: inflate"), "{unknown}");
        let bad =
            Story::parse("name: x\nsteps: [{await: {pods: 1, within: soon}}]", "x.yaml").expect_err("no duration");
        assert!(bad.to_string().contains("soon"), "{bad}");
        assert_eq!(bad.to_string().lines().count(), 1);
        Story::parse("name: x\nsteps: []", "x.yaml").expect_err("no steps");
    }
}
