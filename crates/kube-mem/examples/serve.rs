//! Serves an empty cluster until it is interrupted:
//!
//! ```sh
//! cargo run -p kube-mem --example serve -- /tmp/kubeconfig &
//! kubectl --kubeconfig /tmp/kubeconfig api-resources
//! ```

use kube_mem::ApiServer;
use kube_mem::https::HttpsListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: serve KUBECONFIG")?;
    let listener = HttpsListener::bind(ApiServer::default(), ([127, 0, 0, 1], 0).into()).await?;
    std::fs::write(&path, listener.kubeconfig("memory"))?;
    println!("serving on https://{}", listener.address());
    tokio::signal::ctrl_c().await?;
    Ok(())
}
