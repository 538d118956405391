//! The server behind a socket, for kubectl and everything else that is not in this process.

use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine;
use http_body_util::BodyExt;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

use crate::body::Body;
use crate::server::ApiServer;

/// Why the server cannot be reached from outside.
#[derive(Debug, thiserror::Error)]
pub enum HttpsError {
    #[error("could not listen on {address}")]
    Listen {
        address: SocketAddr,
        #[source]
        cause: std::io::Error,
    },
    #[error("could not make a certificate")]
    Certificate(#[source] rcgen::Error),
    #[error("could not set up TLS")]
    Tls(#[source] rustls::Error),
}

/// A TLS listener in front of an [`ApiServer`]. It stops when it is dropped.
///
/// There are no credentials: whoever reaches the socket is an administrator, so it belongs on loopback.
pub struct HttpsListener {
    address: SocketAddr,
    authority: String,
    task: JoinHandle<()>,
}

impl HttpsListener {
    /// Listens with a certificate of a new authority for this address, `localhost` and the address's own text. Port 0
    /// takes a free one.
    pub async fn bind(server: ApiServer, address: SocketAddr) -> Result<HttpsListener, HttpsError> {
        let listen = |cause| HttpsError::Listen { address, cause };
        let listener = TcpListener::bind(address).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let identity = Identity::new(address).map_err(HttpsError::Certificate)?;
        let acceptor = TlsAcceptor::from(Arc::new(identity.config().map_err(HttpsError::Tls)?));
        let task = tokio::spawn(accept(server, listener, acceptor));
        Ok(HttpsListener {
            address,
            authority: identity.authority,
            task,
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The certificate that clients have to trust, in PEM.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// A kubeconfig that leads here. The context is named after `name`.
    pub fn kubeconfig(&self, name: &str) -> String {
        let authority = base64::engine::general_purpose::STANDARD.encode(&self.authority);
        format!(
            "apiVersion: v1\n\
             kind: Config\n\
             current-context: {name}\n\
             clusters:\n\
             - name: {name}\n  \
               cluster:\n    \
                 server: https://{address}\n    \
                 certificate-authority-data: {authority}\n\
             contexts:\n\
             - name: {name}\n  \
               context:\n    \
                 cluster: {name}\n    \
                 user: {name}\n    \
                 namespace: default\n\
             users:\n\
             - name: {name}\n  \
               user:\n    \
                 token: {name}\n",
            address = self.address,
        )
    }
}

impl Drop for HttpsListener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Takes connections until it is aborted, which ends them too.
async fn accept(server: ApiServer, listener: TcpListener, acceptor: TlsAcceptor) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            // Finished connections are collected, or their results would pile up.
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(serve(server.clone(), stream, acceptor.clone()));
                }
                Err(cause) => tracing::debug!(%cause, "could not take a connection"),
            },
        }
    }
}

async fn serve(server: ApiServer, stream: TcpStream, acceptor: TlsAcceptor) {
    let stream = match acceptor.accept(stream).await {
        Ok(stream) => stream,
        Err(cause) => {
            tracing::debug!(%cause, "a client did not finish the handshake");
            return;
        }
    };
    let service = hyper::service::service_fn(move |request| answer(server.clone(), request));
    let served = auto::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(cause) = served {
        tracing::debug!(%cause, "a connection broke off");
    }
}

async fn answer(
    server: ApiServer,
    request: http::Request<hyper::body::Incoming>,
) -> Result<http::Response<Body>, hyper::Error> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    Ok(server.handle(http::Request::from_parts(parts, body)))
}

/// A certificate for an address, signed by an authority that nobody else uses.
struct Identity {
    authority: String,
    chain: Vec<rustls_pki_types::CertificateDer<'static>>,
    key: Vec<u8>,
}

impl Identity {
    fn new(address: SocketAddr) -> Result<Identity, rcgen::Error> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "kube-mem authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let key = KeyPair::generate()?;
        let names = vec!["localhost".to_owned(), address.ip().to_string()];
        let certificate = CertificateParams::new(names)?.signed_by(&key, &authority)?;
        Ok(Identity {
            authority: authority.pem(),
            chain: vec![certificate.der().clone()],
            key: key.serialize_der(),
        })
    }

    fn config(&self) -> Result<ServerConfig, rustls::Error> {
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key.clone()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(self.chain.clone(), key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}
