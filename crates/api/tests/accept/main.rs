//! Which objects are admitted, and which of those are valid: the tables of the specification (AP17.1 to AP17.5), held
//! against the real API server, the embedded one, and the runtime validation.
//!
//! One test per judge runs all rows and prints every row that it judges differently. The rows of AP17.6 concern a pure
//! function and are tests beside it.

mod capacity_buffer;
mod cluster;
mod ec2_node_class;
mod kwok;
mod node_claim;
mod node_overlay;
mod node_pool;
mod requirements;
mod row;

use api::crds::Variant;
use row::Row;
use testkit::{ControlPlane, Parts};

fn aws_rows() -> Vec<Row> {
    [
        node_pool::rows(),
        node_claim::rows(),
        node_overlay::rows(),
        capacity_buffer::rows(),
        ec2_node_class::rows(),
    ]
    .concat()
}

#[tokio::test]
async fn the_real_api_server_judges_every_row_as_specified() {
    let control_plane = ControlPlane::start(Parts::ApiServer).await.expect("a control plane");
    let client = control_plane.client().await.expect("a client");
    cluster::judge(client, Variant::Aws, &aws_rows()).await;
}

#[tokio::test]
async fn the_embedded_api_server_judges_every_row_as_specified() {
    let server = kube_mem::ApiServer::builder().build();
    cluster::judge(server.client(), Variant::Aws, &aws_rows()).await;
}

#[tokio::test]
async fn the_real_api_server_takes_the_manifests_of_the_simulated_provider() {
    let control_plane = ControlPlane::start(Parts::ApiServer).await.expect("a control plane");
    let client = control_plane.client().await.expect("a client");
    cluster::judge(client, Variant::Kwok, &kwok::rows()).await;
}

#[tokio::test]
async fn the_embedded_api_server_takes_the_manifests_of_the_simulated_provider() {
    let server = kube_mem::ApiServer::builder().build();
    cluster::judge(server.client(), Variant::Kwok, &kwok::rows()).await;
}

#[test]
fn runtime_validation_judges_every_row_as_specified() {
    let wrong: Vec<String> = aws_rows().iter().filter_map(Row::judge_at_runtime).collect();
    assert!(
        wrong.is_empty(),
        "{} rows are judged wrongly:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn every_row_of_the_specification_is_here() {
    let rows = aws_rows();
    for (section, last) in [(1, 72), (2, 10), (3, 17), (4, 8), (5, 51)] {
        for number in 1..=last {
            let id = format!("AP17.{section}.{number}");
            assert!(rows.iter().any(|row| row.id == id), "{id} is missing");
        }
    }
}
