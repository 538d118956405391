//! The zonal shift: zones from which traffic of the cluster has been moved away.

use http::StatusCode;
use serde_json::{Value, json};

use super::{Reply, epoch, text};
use crate::{refusal::Refusal, region::Region};

pub(super) fn carry_out(region: &Region, action: &str, params: &Value) -> Result<Option<Reply>, Refusal> {
    if action != "GetManagedResource" {
        return Ok(None);
    }
    let (asked, arn) = (text(params, "resourceIdentifier")?, region.cluster_arn());
    if asked != arn {
        let message = format!("The resource {asked} is not managed.");
        return Err(Refusal::new("ResourceNotFoundException", message).with_status(StatusCode::NOT_FOUND));
    }
    let shifts: Vec<Value> = region
        .shifts
        .iter()
        .map(|shift| {
            json!({
                "appliedStatus": "APPLIED",
                "zonalShiftId": shift.id,
                "resourceIdentifier": arn,
                "awayFrom": shift.zone_id,
                "startTime": epoch(shift.started),
                "expiryTime": epoch(shift.expires),
                "comment": "",
            })
        })
        .collect();
    Ok(Some(Reply::Json(json!({
        "arn": arn,
        "name": region.plan.cluster,
        "appliedWeights": {},
        "zonalShifts": shifts,
    }))))
}
