//! Reviews over TLS.

use std::{sync::Arc, time::Duration};

use admission::{Pools, Review};
use api::v1::NodePool;
use axum::{
    Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State},
    http::{StatusCode, Uri},
    response::{IntoResponse, Response},
    routing::post,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
    service::TowerToHyperService,
};
use kube::Api;
use parking_lot::RwLock;
use rustls::{
    ServerConfig,
    crypto::ring,
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;
use tracing::{debug, info};

use super::Webhooks;

/// Who connects has to say what for.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// A whole list is converted in one request.
const LARGEST_BODY: usize = 64 << 20;

/// The certificate of the next handshake.
#[derive(Debug, Default)]
pub struct Offered(RwLock<Option<Arc<CertifiedKey>>>);

impl Offered {
    pub fn set(&self, key: Arc<CertifiedKey>) {
        *self.0.write() = Some(key);
    }

    pub fn current(&self) -> Option<Arc<CertifiedKey>> {
        self.0.read().clone()
    }
}

impl ResolvesServerCert for Offered {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current()
    }
}

impl Webhooks {
    /// Answers until dropped.
    pub async fn serve(self: Arc<Self>, listener: TcpListener) -> Result<(), rustls::Error> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(self.offered.clone());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let routes = routes(self);
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                // Finished connections are collected, or their results would pile up.
                Some(_) = connections.join_next() => {}
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        connections.spawn(converse(stream, acceptor.clone(), routes.clone()));
                    }
                    Err(cause) => debug!(%cause, "could not take a connection"),
                },
            }
        }
    }

    /// When the claims of these pools expire. A pool that cannot be read is not one that is missing: its claims would
    /// expire at another time.
    async fn pools(&self, names: Vec<String>) -> Result<Pools, kube::Error> {
        let api: Api<NodePool> = Api::all(self.client.clone());
        let mut pools = Pools::new();
        for name in names {
            let pool = api.get_opt(&name).await?;
            if let Some(time) = pool.and_then(|pool| pool.spec.template.spec.expire_after) {
                pools.insert(name, time);
            }
        }
        Ok(pools)
    }
}

async fn converse(stream: TcpStream, acceptor: TlsAcceptor, routes: Router) {
    let stream = match timeout(HANDSHAKE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(cause)) => return debug!(%cause, "a handshake failed"),
        Err(_) => return debug!("a handshake took too long"),
    };
    let served = auto::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes))
        .await;
    if let Err(cause) = served {
        debug!(%cause, "a connection broke off");
    }
}

pub fn routes(webhooks: Arc<Webhooks>) -> Router {
    let routes = admission::PATHS
        .iter()
        .fold(Router::new(), |routes, path| routes.route(path, post(answer)));
    routes.layer(DefaultBodyLimit::max(LARGEST_BODY)).with_state(webhooks)
}

async fn answer(State(webhooks): State<Arc<Webhooks>>, uri: Uri, body: Bytes) -> Response {
    let review = match Review::read(uri.path(), &body) {
        Ok(review) => review,
        Err(error) => return (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    };
    let pools = match webhooks.pools(review.pools()).await {
        Ok(pools) => pools,
        Err(error) => {
            let problem = format!("the pools of claims cannot be read: {error}");
            return (StatusCode::SERVICE_UNAVAILABLE, problem).into_response();
        }
    };
    let answer = review.answer(&webhooks.rules, &pools);
    for place in ["/response/status/message", "/response/result/message"] {
        if let Some(problem) = answer.pointer(place) {
            info!(path = uri.path(), %problem, "refused a review");
        }
    }
    Json(answer).into_response()
}
