//! Keeps a playground's cluster in a folder, so that the next one goes on where it stopped.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use kube_mem::{ApiServer, Dump};

/// How much of a story a crash of the playground may cost.
const INTERVAL: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub struct Keep {
    folder: PathBuf,
}

impl Keep {
    pub fn open(folder: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("--data {}: cannot be made", folder.display()))?;
        Ok(Self {
            folder: folder.to_owned(),
        })
    }

    fn file(&self) -> PathBuf {
        self.folder.join("cluster.json")
    }

    /// What the last playground left, if there was one.
    pub fn load(&self) -> anyhow::Result<Option<Dump>> {
        let file = self.file();
        if !file.exists() {
            return Ok(None);
        }
        let text = fs::read_to_string(&file).with_context(|| format!("{}: cannot be read", file.display()))?;
        let dump = serde_json::from_str(&text).with_context(|| {
            format!(
                "{}: is not a playground's cluster; remove it to start anew",
                file.display()
            )
        })?;
        Ok(Some(dump))
    }

    /// Writes beside the file and then moves over it: a crash leaves the old state or the new one.
    pub fn save(&self, server: &ApiServer) -> anyhow::Result<()> {
        let (file, part) = (self.file(), self.folder.join("cluster.json.part"));
        let text = serde_json::to_vec(&server.dump()).context("the cluster cannot be written as JSON")?;
        fs::write(&part, text).with_context(|| format!("{}: cannot be written", part.display()))?;
        fs::rename(&part, &file).with_context(|| format!("{}: cannot be replaced", file.display()))
    }

    /// Saves whenever something has changed; never returns.
    pub async fn save_now_and_then(self, server: ApiServer) {
        let mut saved = 0;
        loop {
            tokio::time::sleep(INTERVAL).await;
            let version = server.resource_version();
            if version == saved {
                continue;
            }
            match self.save(&server) {
                Ok(()) => saved = version,
                Err(error) => eprintln!("karpenter: {error:#}"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_folder_holds_nothing_and_an_old_one_what_was_saved() {
        let folder = tempfile::tempdir().expect("a folder");
        let keep = Keep::open(&folder.path().join("new")).expect("it is made");
        assert!(keep.load().expect("nothing is no failure").is_none());
        keep.save(&ApiServer::default()).expect("it is written");
        assert!(keep.load().expect("it can be read").is_some());
    }

    #[test]
    fn a_file_that_is_something_else_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let keep = Keep::open(folder.path()).expect("it is there");
        fs::write(folder.path().join("cluster.json"), "{}").expect("a file");
        let error = keep.load().expect_err("it is no cluster");
        assert!(error.to_string().contains("cluster.json"), "{error}");
    }
}
