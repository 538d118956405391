//! How the API server is reached: by a kubeconfig or by what a pod is given, and through which proxy.
//!
//! Proxies follow the rules of kubectl. Kube's own differ where it matters: it holds the names of `NO_PROXY` against the proxy
//! instead of the API server, and knows no proxy in a pod. It still reads `NO_PROXY` beside a kubeconfig, and refuses one with
//! an empty name in it; there is no way to keep it from that.

use std::env;

use anyhow::Context as _;
use http::Uri;
use hyper_util::client::proxy::matcher::Matcher;
use kube::{
    Config,
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
};

/// The cluster of a file and a context, or of those that the environment names, or the one that this pod runs in.
pub async fn config(file: Option<&str>, context: Option<&str>) -> anyhow::Result<Config> {
    let named = file.is_some() || context.is_some() || env::var_os("KUBECONFIG").is_some();
    let (mut config, own_proxy) = match written(file, context).await {
        Ok(found) => found,
        // What the user names has to be good; only without a name the program looks around.
        Err(error) if named => return Err(error.into()),
        Err(_) => (Config::infer().await?, None),
    };
    let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    config.proxy_url = proxy(&config.cluster_url, own_proxy, &variable)?;
    Ok(config)
}

/// The cluster of a kubeconfig, and the proxy that it names.
async fn written(file: Option<&str>, context: Option<&str>) -> Result<(Config, Option<String>), KubeconfigError> {
    let kubeconfig = match file {
        Some(path) => Kubeconfig::read_from(path)?,
        None => Kubeconfig::read()?,
    };
    let own_proxy = own_proxy(&kubeconfig, context);
    let options = KubeConfigOptions {
        context: context.map(str::to_owned),
        ..KubeConfigOptions::default()
    };
    Ok((Config::from_custom_kubeconfig(kubeconfig, &options).await?, own_proxy))
}

/// What a kubeconfig says of the way to the cluster of a context.
fn own_proxy(kubeconfig: &Kubeconfig, context: Option<&str>) -> Option<String> {
    let context = context.or(kubeconfig.current_context.as_deref())?;
    let context = kubeconfig.contexts.iter().find(|known| known.name == context)?;
    let cluster = &context.context.as_ref()?.cluster;
    let cluster = kubeconfig.clusters.iter().find(|known| known.name == *cluster)?;
    let proxy = cluster.cluster.as_ref()?.proxy_url.clone();
    proxy.filter(|proxy| !proxy.is_empty())
}

/// The proxy on the way to a server: the kubeconfig's own whatever else is said, or the environment's, which is for others than
/// this machine and those that `NO_PROXY` names.
fn proxy(server: &Uri, own: Option<String>, variable: &dyn Fn(&str) -> Option<String>) -> anyhow::Result<Option<Uri>> {
    let either = |name: &str| variable(name).or_else(|| variable(&name.to_lowercase()));
    let (name, proxy) = match own {
        Some(proxy) => ("proxy-url", Some(proxy)),
        None if is_this_machine(server) || is_excepted(server, either("NO_PROXY")) => return Ok(None),
        None if server.scheme_str() == Some("http") => ("HTTP_PROXY", either("HTTP_PROXY")),
        None => ("HTTPS_PROXY", either("HTTPS_PROXY")),
    };
    let Some(proxy) = proxy else { return Ok(None) };
    let written = match proxy.contains("://") {
        true => proxy,
        false => format!("http://{proxy}"),
    };
    let proxy = written.parse().with_context(|| format!("{name} is not a URL"))?;
    Ok(Some(proxy))
}

fn is_this_machine(server: &Uri) -> bool {
    let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
    let address = host.parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

fn is_excepted(server: &Uri, names: Option<String>) -> bool {
    // It only matters whether there is a way around a proxy, not which.
    let matcher = Matcher::builder().all("http://proxy").no(names.unwrap_or_default());
    matcher.build().intercept(server).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Variables as `NAME=value`, and the proxy to the server.
    #[track_caller]
    fn check(server: &str, own: Option<&str>, variables: &[&str], expected: Option<&str>) {
        let variable = |wanted: &str| {
            let mut pairs = variables.iter().filter_map(|variable| variable.split_once('='));
            let (_, value) = pairs.find(|(name, _)| *name == wanted)?;
            Some(value.to_owned())
        };
        let server = server.parse().expect("a URL");
        let found = proxy(&server, own.map(str::to_owned), &variable).expect("a proxy that can be read");
        let found = found.map(|found| found.to_string());
        assert_eq!(found.as_deref(), expected, "{server} with {variables:?}");
    }

    #[test]
    fn the_way_to_a_server_is_kubectls() {
        let eks = "https://demo.gr7.us-west-2.eks.amazonaws.com";
        let secure = "HTTPS_PROXY=http://proxy:3128";
        check(eks, None, &[], None);
        check(eks, None, &[secure], Some("http://proxy:3128/"));
        check(eks, None, &["https_proxy=proxy:3128"], Some("http://proxy:3128/"));
        check(eks, None, &["HTTP_PROXY=http://proxy:3128"], None);
        check(
            "http://plain:80",
            None,
            &["HTTP_PROXY=http://proxy:3128"],
            Some("http://proxy:3128/"),
        );
        check(eks, None, &[secure, "NO_PROXY=10.0.0.0/8, .eks.amazonaws.com,"], None);
        check(eks, None, &[secure, "no_proxy=*"], None);
        check(eks, None, &[secure, "NO_PROXY=proxy"], Some("http://proxy:3128/"));
        check("https://10.100.0.1:443", None, &[secure, "NO_PROXY=10.0.0.0/8"], None);
        check(
            "https://172.20.0.1:443",
            None,
            &[secure, "NO_PROXY=10.0.0.0/8"],
            Some("http://proxy:3128/"),
        );
        for here in ["https://127.0.0.1:6443", "https://localhost:6443", "https://[::1]:6443"] {
            check(here, None, &[secure], None);
        }
        check(
            eks,
            Some("socks5://bastion:1080"),
            &[secure, "NO_PROXY=*"],
            Some("socks5://bastion:1080/"),
        );
    }

    #[test]
    fn a_proxy_that_cannot_be_read_is_named_and_not_shown() {
        let server = "https://demo".parse().expect("a URL");
        let variable = |name: &str| (name == "HTTPS_PROXY").then(|| "http://user:hunter2 @proxy".to_owned());
        let error = proxy(&server, None, &variable).expect_err("no URL has a space");
        assert_eq!(format!("{error:#}"), "HTTPS_PROXY is not a URL: invalid uri character");
    }
}
