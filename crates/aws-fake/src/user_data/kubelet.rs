//! The kubelet's arguments, and the words of a command line.

use super::{Bootstrap, Taint, UserDataError};

/// Splits as a shell does: quotes keep words together, a backslash takes the next letter or the end of the line as it is.
pub fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' => {
                let word = word.get_or_insert_default();
                word.extend(letters.by_ref().take_while(|letter| *letter != '\''));
            }
            '"' => {
                let word = word.get_or_insert_default();
                while let Some(letter) = letters.next().filter(|letter| *letter != '"') {
                    match letter {
                        '\\' => word.extend(letters.next()),
                        other => word.push(other),
                    }
                }
            }
            '\\' => match letters.next() {
                Some('\n') | None => {}
                Some(other) => word.get_or_insert_default().push(other),
            },
            other if other.is_whitespace() => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    words
}

/// Takes over what the arguments say.
pub fn apply(arguments: &str, found: &mut Bootstrap) -> Result<(), UserDataError> {
    for word in words(arguments) {
        let Some((flag, value)) = word.split_once('=') else {
            continue;
        };
        match flag {
            "--node-labels" => found.labels.extend(pairs(value)),
            "--register-with-taints" => {
                let taints = value.split(',').filter(|text| !text.is_empty()).map(taint);
                found.taints = taints.collect::<Result<_, _>>()?;
            }
            "--max-pods" => found.max_pods = value.parse().ok(),
            "--kube-reserved" => found.kube_reserved.extend(pairs(value)),
            "--system-reserved" => found.system_reserved.extend(pairs(value)),
            _ => {}
        }
    }
    Ok(())
}

fn pairs(text: &str) -> impl Iterator<Item = (String, String)> {
    text.split(',')
        .filter_map(|pair| pair.split_once('='))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
}

/// `key=value:effect`, or `key:effect` without a value.
pub fn taint(text: &str) -> Result<Taint, UserDataError> {
    let bad = || UserDataError::Taint(text.to_owned());
    let (rest, effect) = text.rsplit_once(':').ok_or_else(bad)?;
    let (key, value) = rest.split_once('=').unwrap_or((rest, ""));
    checked(Taint {
        key: key.to_owned(),
        value: value.to_owned(),
        effect: effect.to_owned(),
    })
}

pub fn checked(taint: Taint) -> Result<Taint, UserDataError> {
    let known = ["NoSchedule", "PreferNoSchedule", "NoExecute"].contains(&taint.effect.as_str());
    if known && !taint.key.is_empty() {
        return Ok(taint);
    }
    Err(UserDataError::Taint(format!(
        "{}={}:{}",
        taint.key, taint.value, taint.effect
    )))
}
