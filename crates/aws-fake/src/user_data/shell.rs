//! Scripts that start the kubelet: `bootstrap.sh` of Amazon Linux 2, and EKSBootstrap of Windows.

use super::{Bootstrap, UserDataError, kubelet, mime::Part};

/// The last call of `bootstrap.sh` in any script.
pub fn bootstrap(parts: &[Part]) -> Result<Bootstrap, UserDataError> {
    let scripts = parts
        .iter()
        .filter(|part| part.kind.is_empty() || part.kind.starts_with("text/"));
    let mut calls = scripts.rev().filter_map(|part| {
        let place = part.body.rfind("/bootstrap.sh")?;
        Some(command(&part.body[place..]))
    });
    let call = calls.next().ok_or(UserDataError::NoBootstrap)?;
    let mut found = Bootstrap::default();
    let mut words = kubelet::words(&call).into_iter().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--apiserver-endpoint" => found.endpoint = words.next().unwrap_or_default(),
            "--kubelet-extra-args" => kubelet::apply(&words.next().unwrap_or_default(), &mut found)?,
            flag if flag.starts_with("--") => drop(words.next()),
            _ if found.cluster.is_empty() => found.cluster = word,
            _ => {}
        }
    }
    // The script asks EKS for what it is not told.
    if found.endpoint.is_empty() {
        "https://eks".clone_into(&mut found.endpoint);
    }
    Ok(found)
}

/// One command with its continued lines; lines inside quotes belong to it.
fn command(text: &str) -> String {
    let mut quote = None;
    let mut escaped = false;
    let mut out = String::new();
    for letter in text.chars() {
        match (quote, letter) {
            (None, '\n') if !escaped => break,
            (None, '\'' | '"') if !escaped => quote = Some(letter),
            (Some(open), close) if open == close && !(escaped && open == '"') => quote = None,
            _ => {}
        }
        escaped = letter == '\\' && !escaped;
        out.push(letter);
    }
    out
}

pub fn power_shell(text: &str) -> Result<Bootstrap, UserDataError> {
    let inside = text
        .split_once("<powershell>")
        .and_then(|(_, rest)| rest.split_once("</powershell>"));
    let (script, _) = inside.ok_or(UserDataError::NoPowerShell)?;
    let call = script.lines().rfind(|line| line.contains("-EKSClusterName"));
    let call = call.ok_or(UserDataError::NoPowerShell)?;
    let words = kubelet::words(call);
    let after = |flag: &str| {
        let place = words.iter().position(|word| word == flag)?;
        words.get(place + 1).cloned()
    };
    let mut found = Bootstrap {
        cluster: after("-EKSClusterName").unwrap_or_default(),
        endpoint: after("-APIServerEndpoint").unwrap_or_default(),
        ..Bootstrap::default()
    };
    kubelet::apply(&after("-KubeletExtraArgs").unwrap_or_default(), &mut found)?;
    Ok(found)
}
