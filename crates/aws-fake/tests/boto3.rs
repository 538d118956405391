//! AWS's own Python SDK as the judge of what goes over the wire: `tools/aws-fake/boto3/suite.py` makes every call that
//! Karpenter makes. The Python packages are installed once, into the user's cache.

use std::{path::Path, process::Stdio, sync::Arc};

use aws_fake::{Fake, region::Plan, server::serve};
use tokio::process::Command;

#[tokio::test(flavor = "multi_thread")]
async fn boto3_understands_every_answer() {
    let fake = Fake::new(Plan::new("us-west-2", "demo"), Arc::new(clock::SystemClock));
    let served = serve(fake, 0).await.expect("a free port");
    let check = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/aws-fake/boto3/check");
    let output = Command::new(check)
        .arg(served.endpoint())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .expect("bash runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
