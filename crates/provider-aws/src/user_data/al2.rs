//! Amazon Linux 2: a shell script that calls the image's bootstrap script.

use std::net::IpAddr;

use super::{Bootstrap, UserDataError, kubelet_flags, mime};

pub(super) fn text(bootstrap: &Bootstrap) -> Result<String, UserDataError> {
    let mut parts = match bootstrap.custom_text() {
        None => Vec::new(),
        Some(custom) if mime::is_archive(custom) => mime::read(custom).map_err(UserDataError::Archive)?,
        Some(script) => vec![mime::Part::new(mime::SHELL_SCRIPT, script)],
    };
    parts.push(mime::Part::new(mime::SHELL_SCRIPT, &script(bootstrap)?));
    Ok(mime::write(&parts))
}

fn script(bootstrap: &Bootstrap) -> Result<String, UserDataError> {
    let ca = bootstrap.ca_bundle.as_ref();
    let ca = ca.map(|ca| format!("--b64-cluster-ca '{ca}'")).unwrap_or_default();
    let is_ipv6 = bootstrap
        .dns()
        .is_some_and(|dns| dns.parse().is_ok_and(|address: IpAddr| address.is_ipv6()));
    let arguments = [
        Some(format!(
            "/etc/eks/bootstrap.sh '{}' --apiserver-endpoint '{}' {ca}",
            bootstrap.cluster_name, bootstrap.cluster_endpoint
        )),
        is_ipv6.then(|| "--ip-family ipv6".to_owned()),
        bootstrap.dns().map(|dns| format!("--dns-cluster-ip '{dns}'")),
        bootstrap.max_pods().map(|_| "--use-max-pods false".to_owned()),
        Some(format!(
            "--kubelet-extra-args '{}'",
            kubelet_flags::flags(bootstrap)?.join(" ")
        )),
        bootstrap.uses_raid0().then(|| "--local-disks raid0".to_owned()),
    ];
    let arguments: Vec<String> = arguments.into_iter().flatten().collect();
    Ok(format!(
        "#!/bin/bash -xe\n\
         exec > >(tee /var/log/user-data.log|logger -t user-data -s 2>/dev/console) 2>&1\n{}",
        arguments.join(" \\\n")
    ))
}
