//! Bottlerocket's settings in TOML.

use toml_edit::{DocumentMut, Item, TableLike};

use super::{Bootstrap, UserDataError, kubelet};

pub fn bootstrap(text: &str) -> Result<Bootstrap, UserDataError> {
    let bad = |error: toml_edit::TomlError| UserDataError::Settings(error.message().to_owned());
    let document: DocumentMut = text.parse().map_err(bad)?;
    let settings = document.get("settings").and_then(|settings| settings.get("kubernetes"));
    let settings = settings
        .and_then(Item::as_table_like)
        .ok_or(UserDataError::Missing("cluster"))?;
    let text = |name: &str| settings.get(name).and_then(Item::as_str).unwrap_or_default().to_owned();
    let table = |name: &str| settings.get(name).and_then(Item::as_table_like);
    let mut found = Bootstrap {
        cluster: text("cluster-name"),
        endpoint: text("api-server"),
        labels: table("node-labels").map(texts).unwrap_or_default(),
        max_pods: settings.get("max-pods").and_then(number),
        kube_reserved: table("kube-reserved").map(texts).unwrap_or_default(),
        system_reserved: table("system-reserved").map(texts).unwrap_or_default(),
        ..Bootstrap::default()
    };
    if text("cluster-certificate").is_empty() {
        return Err(UserDataError::Missing("certificate authority"));
    }
    for (key, values) in table("node-taints").into_iter().flat_map(TableLike::iter) {
        for value in values.as_array().into_iter().flatten() {
            let value = value.as_str().unwrap_or_default();
            found.taints.push(kubelet::taint(&format!("{key}={value}"))?);
        }
    }
    Ok(found)
}

fn texts(table: &dyn TableLike) -> std::collections::BTreeMap<String, String> {
    let text = |item: &Item| {
        item.as_str()
            .map_or_else(|| item.to_string().trim().to_owned(), str::to_owned)
    };
    table.iter().map(|(key, item)| (key.to_owned(), text(item))).collect()
}

fn number(item: &Item) -> Option<u32> {
    let plain = item.as_integer().and_then(|number| u32::try_from(number).ok());
    plain.or_else(|| item.as_str()?.parse().ok())
}
