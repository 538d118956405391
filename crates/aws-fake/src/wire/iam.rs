//! IAM: instance profiles and their roles.

use jiff::Timestamp;

use super::{Reply, page, query::Params, time, xml::Xml};
use crate::{
    refusal::Refusal,
    region::{
        Region, Tags,
        identity::{Profile, Role},
    },
};

/// What IAM lists at once when nobody asks for less.
const PAGE: usize = 100;

pub(super) fn carry_out(
    region: &mut Region,
    action: &str,
    params: &Params,
    now: Timestamp,
) -> Result<Option<Reply>, Refusal> {
    let mut xml = Xml::default();
    let name = || params.required("InstanceProfileName");
    match action {
        "GetInstanceProfile" => {
            let found = region.identity.profile(name()?)?;
            xml.node("InstanceProfile", |xml| write_profile(xml, region, found));
        }
        "CreateInstanceProfile" => {
            let (name, path) = (name()?.to_owned(), params.text("Path"));
            let made = region.create_profile(&name, path, tags(params), now)?.clone();
            xml.node("InstanceProfile", |xml| write_profile(xml, region, &made));
        }
        "AddRoleToInstanceProfile" => region.identity.attach(name()?, params.required("RoleName")?)?,
        "RemoveRoleFromInstanceProfile" => region.identity.detach(name()?, params.required("RoleName")?)?,
        "DeleteInstanceProfile" => region.identity.delete(name()?)?,
        "TagInstanceProfile" => {
            let name = name()?;
            region.identity.profile(name)?;
            if let Some(profile) = region.identity.profiles.get_mut(name) {
                profile.tags.extend(tags(params));
            }
        }
        "ListInstanceProfiles" => {
            let found = region.identity.under(params.text("PathPrefix").unwrap_or("/"));
            let size = params.number("MaxItems")?.unwrap_or(PAGE);
            let (found, next) = page(found, params.text("Marker"), size)?;
            xml.members("InstanceProfiles", found, |xml, profile| {
                write_profile(xml, region, profile);
            });
            xml.leaf("IsTruncated", next.is_some());
            xml.maybe("Marker", next);
        }
        "GetRole" => {
            let role = region.identity.role(params.required("RoleName")?)?;
            xml.node("Role", |xml| write_role(xml, role));
        }
        _ => return Ok(None),
    }
    Ok(Some(Reply::Xml(xml)))
}

fn tags(params: &Params) -> Tags {
    let pair = |tag: &Params| {
        Some((
            tag.text("Key")?.to_owned(),
            tag.text("Value").unwrap_or_default().to_owned(),
        ))
    };
    params.list("Tags").into_iter().filter_map(pair).collect()
}

fn write_profile(xml: &mut Xml, region: &Region, profile: &Profile) {
    xml.leaf("Path", &profile.path);
    xml.leaf("InstanceProfileName", &profile.name);
    xml.leaf("InstanceProfileId", &profile.id);
    xml.leaf("Arn", &profile.arn);
    xml.leaf("CreateDate", time(profile.created));
    let role = profile.role.as_ref().and_then(|name| region.identity.roles.get(name));
    xml.members("Roles", role, write_role);
    xml.members("Tags", &profile.tags, |xml, (key, value)| {
        xml.leaf("Key", key);
        xml.leaf("Value", value);
    });
}

fn write_role(xml: &mut Xml, role: &Role) {
    xml.leaf("Path", &role.path);
    xml.leaf("RoleName", &role.name);
    xml.leaf("RoleId", &role.id);
    xml.leaf("Arn", &role.arn);
    xml.leaf("CreateDate", time(role.created));
}
