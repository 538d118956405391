//! The way to the API server leads through a proxy where the environment or the kubeconfig says so.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _, copy},
    net::{Ipv4Addr, Shutdown, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use crate::server::Live;

/// Connects whoever asks, with the port of this machine that was asked for, and keeps in mind what was asked.
struct Proxy {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let heard = asked.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let heard = heard.clone();
                thread::spawn(move || connect(stream, &heard));
            }
        });
        Self { address, asked }
    }

    /// What was asked since the last time.
    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().expect("nobody panicked"))
    }
}

/// Serves one `CONNECT`. Whoever asks waits for the answer before anything else is sent.
fn connect(stream: TcpStream, heard: &Mutex<Vec<String>>) -> Option<()> {
    let mut lines = BufReader::new(&stream).lines();
    let request = lines.next()?.ok()?;
    let rest: Vec<String> = lines
        .map_while(Result::ok)
        .take_while(|line| !line.is_empty())
        .collect();
    let target = request.strip_prefix("CONNECT ")?.split(' ').next()?.to_owned();
    let port = target.rsplit(':').next()?.parse::<u16>().ok()?;
    let secret = rest
        .iter()
        .find(|line| line.to_lowercase().starts_with("proxy-authorization: "));
    let secret = secret.map_or_else(String::new, |line| {
        format!(" with {}", line.split_once(": ").expect("a header").1)
    });
    heard.lock().expect("nobody panicked").push(format!("{target}{secret}"));
    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
    (&stream)
        .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
        .ok()?;
    let (mut from, mut to) = (stream.try_clone().ok()?, server.try_clone().ok()?);
    thread::spawn(move || {
        let _ = copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
    let _ = copy(&mut &server, &mut &stream);
    Some(())
}

/// The kubeconfig after a change of the address in it, which stays this machine's.
fn redirected(live: &Live, name: &str, server: &str) -> String {
    let kubeconfig = fs::read_to_string(live.folder().join("kubeconfig")).expect("a file");
    assert!(kubeconfig.contains("server: https://127.0.0.1:"), "{kubeconfig}");
    let changed = kubeconfig.replace("server: https://127.0.0.1:", server);
    fs::write(live.folder().join(name), &changed).expect("a file");
    changed
}

#[tokio::test(flavor = "multi_thread")]
async fn proxies_are_used_for_others_than_this_machine_and_those_that_are_excepted() {
    let live = Live::start(&[]).await;
    let proxy = Proxy::start();
    let secure = format!("http://user:pa%40ss@{}", proxy.address);
    let own = format!("http://{}", proxy.address);
    // An address of this machine that does not look like one.
    redirected(
        &live,
        "elsewhere",
        "tls-server-name: localhost\n    server: https://0.0.0.0:",
    );
    let with_own = format!("tls-server-name: localhost\n    proxy-url: {own}\n    server: https://0.0.0.0:");
    redirected(&live, "with-own", &with_own);
    let nowhere = "http://127.0.0.1:9";
    // The kubeconfig, HTTPS_PROXY, NO_PROXY, and what the proxy is asked.
    let with_password = " with Basic dXNlcjpwYUBzcw==";
    let table = [
        ("kubeconfig", nowhere, "", None),
        ("elsewhere", &*secure, "", Some(with_password)),
        ("elsewhere", nowhere, "localhost,0.0.0.0/8", None),
        ("elsewhere", &*secure, "127.0.0.0/8", Some(with_password)),
        ("with-own", nowhere, "*", Some("")),
    ];
    for (kubeconfig, secure, no, expected) in table {
        let variables = [("HTTPS_PROXY", secure), ("NO_PROXY", no)];
        let output = live
            .run_with(&["snapshot", "--kubeconfig", kubeconfig], &variables)
            .await;
        let told = String::from_utf8_lossy(&output.stderr);
        let situation = format!("{kubeconfig} {secure} {no}: {told}");
        assert_eq!(output.status.code(), Some(0), "{situation}");
        let asked = proxy.asked();
        assert_eq!(asked.is_empty(), expected.is_none(), "{situation} {asked:?}");
        let wanted = expected.unwrap_or_default();
        let right = |asked: &String| asked.starts_with("0.0.0.0:") && asked.contains(wanted);
        assert!(asked.iter().all(right), "{situation} {asked:?}");
    }
}
