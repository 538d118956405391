//! Systems Manager: parameters by name.

use serde_json::{Value, json};

use super::{Reply, text};
use crate::{refusal::Refusal, region::Region};

pub(super) fn carry_out(region: &Region, action: &str, params: &Value) -> Result<Option<Reply>, Refusal> {
    if action != "GetParameter" {
        return Ok(None);
    }
    let asked = text(params, "Name")?;
    // A parameter can be asked for by its ARN as well.
    let name = asked.split_once(":parameter").map_or(asked, |(_, name)| name);
    let Some(value) = region.images.parameters.get(name) else {
        return Err(Refusal::new("ParameterNotFound", ""));
    };
    let plan = &region.plan;
    let account = if name.starts_with("/aws/") { "" } else { &plan.account };
    Ok(Some(Reply::Json(json!({"Parameter": {
        "Name": name,
        "Type": "String",
        "Value": value,
        "Version": 1,
        "LastModifiedDate": super::epoch(region.made),
        "ARN": format!("arn:aws:ssm:{}:{account}:parameter{name}", plan.region),
        "DataType": "text",
    }}))))
}
