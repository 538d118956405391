//! Files that have grown past what a reader can hold.

use super::source::Source;

const MOST_LINES: usize = 700;

pub fn check(files: &[Source]) -> Vec<String> {
    // Only what people write: data and generated manifests may be as long as they are.
    let written = files
        .iter()
        .filter(|file| ["rs", "md", "sh"].iter().any(|extension| file.has_extension(extension)));
    written
        .filter_map(|file| {
            let lines = file.text.lines().count();
            (lines >= MOST_LINES)
                .then(|| format!("{}: {lines} lines, split it before {MOST_LINES}", file.path.display()))
        })
        .collect()
}
