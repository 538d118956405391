//! STS: who is asking, and credentials for service accounts.

use jiff::{SignedDuration, Timestamp};

use super::{Reply, query::Params, xml::Xml};
use crate::{refusal::Refusal, region::Region};

pub(super) fn carry_out(
    region: &Region,
    action: &str,
    params: &Params,
    now: Timestamp,
) -> Result<Option<Reply>, Refusal> {
    let account = &region.plan.account;
    let mut xml = Xml::default();
    match action {
        "GetCallerIdentity" => {
            xml.leaf("Arn", format!("arn:aws:sts::{account}:assumed-role/karpenter/aws-fake"));
            xml.leaf("UserId", "AROAEXAMPLEEXAMPLE123:aws-fake");
            xml.leaf("Account", account);
        }
        "AssumeRoleWithWebIdentity" | "AssumeRole" => {
            let role = params.required("RoleArn")?;
            let session = params.required("RoleSessionName")?;
            let name = role.rsplit('/').next().unwrap_or(role);
            xml.node("Credentials", |xml| {
                xml.leaf("AccessKeyId", "ASIAEXAMPLEEXAMPLE12");
                xml.leaf("SecretAccessKey", "secret");
                xml.leaf("SessionToken", "token");
                xml.leaf("Expiration", super::time(now + SignedDuration::from_hours(1)));
            });
            xml.node("AssumedRoleUser", |xml| {
                xml.leaf("Arn", format!("arn:aws:sts::{account}:assumed-role/{name}/{session}"));
                xml.leaf("AssumedRoleId", format!("AROAEXAMPLEEXAMPLE123:{session}"));
            });
        }
        _ => return Ok(None),
    }
    Ok(Some(Reply::Xml(xml)))
}
