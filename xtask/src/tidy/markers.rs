//! Forgotten markers and paths of somebody's machine.

use super::source::Source;

/// Words that promise work instead of doing it. Spelled in halves, or this file would complain about itself.
const WORDS: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("HA", "CK"),
];

const MACROS: &[&str] = &[concat!("to", "do!"), concat!("unimple", "mented!")];

const MACHINE_PATHS: &[&str] = &[
    concat!("/ho", "me/"),
    concat!("/Us", "ers/"),
    concat!("/ro", "ot/"),
    concat!("/wo", "rk/"),
];

pub fn check(files: &[Source]) -> Vec<String> {
    let mut complaints = Vec::new();
    // Lock files and checksums are full of letters that mean nothing.
    let prose = files
        .iter()
        .filter(|file| !["lock", "sum"].iter().any(|extension| file.has_extension(extension)));
    for file in prose {
        for (number, line) in file.lines() {
            let here = format!("{}:{number}", file.path.display());
            for word in WORDS.iter().chain(MACROS).filter(|word| has_word(line, word)) {
                complaints.push(format!("{here}: forgotten marker {word}"));
            }
            for path in MACHINE_PATHS.iter().filter(|path| has_path(line, path)) {
                complaints.push(format!("{here}: path of one machine, {path}"));
            }
        }
    }
    complaints
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + word.len()..].chars().next();
        !before.is_some_and(is_word) && (word.ends_with('!') || !after.is_some_and(is_word))
    })
}

/// Absolute paths only: the prefix does not continue a relative path or a URL.
fn has_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        !before.is_some_and(|c| is_word(c) || matches!(c, '.' | '-' | '/' | '}' | ')' | '*' | '~'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(text: &str) -> usize {
        check(&[Source {
            path: "some.rs".into(),
            text: text.to_owned(),
        }])
        .len()
    }

    #[test]
    fn markers_are_found_as_whole_words() {
        assert_eq!(complaints(&format!("// {} later", WORDS[0])), 1);
        assert_eq!(complaints(&format!("let x = {}();", MACROS[0])), 1);
        for word in WORDS {
            assert_eq!(complaints(&format!("method{word}S and {word}NEY")), 0, "{word}");
        }
    }

    #[test]
    fn absolute_paths_are_found_and_relative_ones_are_not() {
        assert_eq!(complaints(&format!("see {}me/notes", MACHINE_PATHS[0])), 1);
        assert_eq!(complaints(&format!("https://example.com{}x", MACHINE_PATHS[3])), 0);
        assert_eq!(complaints(&format!("docs{}x", MACHINE_PATHS[3])), 0);
    }
}
