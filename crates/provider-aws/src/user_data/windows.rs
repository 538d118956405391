//! Windows: a PowerShell script that calls the image's bootstrap script.

use super::{Bootstrap, UserDataError, kubelet_flags};

pub(super) fn text(bootstrap: &Bootstrap) -> Result<String, UserDataError> {
    let mut text = "<powershell>\n".to_owned();
    if let Some(custom) = bootstrap.custom_text() {
        text += custom;
        text += "\n";
    }
    let ca = bootstrap.ca_bundle.as_ref();
    let ca = ca.map(|ca| format!(" -Base64ClusterCA '{ca}'")).unwrap_or_default();
    let dns = bootstrap.dns();
    let dns = dns.map(|dns| format!(" -DNSClusterIP '{dns}'")).unwrap_or_default();
    text += "[string]$EKSBootstrapScriptFile = \"$env:ProgramFiles\\Amazon\\EKS\\Start-EKSBootstrap.ps1\"\n";
    text += &format!(
        "& $EKSBootstrapScriptFile -EKSClusterName '{}' -APIServerEndpoint '{}'{ca} -KubeletExtraArgs '{}'{dns}\n",
        bootstrap.cluster_name,
        bootstrap.cluster_endpoint,
        kubelet_flags::flags(bootstrap)?.join(" "),
    );
    text += "</powershell>";
    Ok(text)
}
