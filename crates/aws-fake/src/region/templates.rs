//! Launch templates: what a fleet gives to every instance that it launches.

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::Timestamp;

use super::{Region, Tags, filter::Filtered};
use crate::refusal::Refusal;

/// What EC2 accepts as user data.
const USER_DATA_BYTES: usize = 16 * 1024;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemplateData {
    pub image: Option<String>,
    pub instance_type: Option<String>,
    /// As it came, in base64.
    pub user_data: Option<String>,
    pub profile: Option<ProfileRef>,
    pub interfaces: Vec<Interface>,
    pub groups: Vec<String>,
    pub volumes: Vec<Volume>,
    pub placement: Placement,
    pub reservation: ReservationChoice,
    pub market: Option<String>,
    pub monitoring: bool,
    pub metadata: Vec<(String, String)>,
    /// By the kind of resource.
    pub tags: Vec<(String, Tags)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProfileRef {
    Name(String),
    Arn(String),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    pub device: u32,
    pub card: u32,
    /// `interface`, `efa` or `efa-only`.
    pub kind: String,
    pub groups: Vec<String>,
    pub subnet: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Volume {
    pub device: String,
    pub gibibytes: u32,
    pub snapshot: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    pub tenancy: Option<String>,
    pub group_id: Option<String>,
    pub group_name: Option<String>,
    pub partition: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReservationChoice {
    /// `capacity-reservations-only`, `open` or `none`; EC2 takes nothing for `open`.
    pub preference: Option<String>,
    pub target: Option<String>,
}

impl TemplateData {
    /// What EC2 already refuses when a template is made.
    pub fn check(&self) -> Result<(), Refusal> {
        let Some(text) = &self.user_data else { return Ok(()) };
        let malformed = |message: &str| Refusal::new("InvalidUserData.Malformed", message);
        let bytes = STANDARD
            .decode(text)
            .map_err(|_| malformed("Invalid BASE64 encoding of user data."))?;
        if bytes.len() > USER_DATA_BYTES {
            return Err(malformed("User data is limited to 16384 bytes"));
        }
        Ok(())
    }
}

#[derive(Clone, Debug)]
pub struct Template {
    pub id: String,
    pub name: String,
    pub created: Timestamp,
    pub data: TemplateData,
    pub tags: Tags,
    visible_at: Timestamp,
}

impl Template {
    pub fn is_known(&self, now: Timestamp) -> bool {
        self.visible_at <= now
    }
}

/// How a call names a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplateRef {
    Id(String),
    Name(String),
}

impl Region {
    pub fn create_template(
        &mut self,
        name: &str,
        data: TemplateData,
        tags: Tags,
        now: Timestamp,
    ) -> Result<&Template, Refusal> {
        let form = |letter: char| letter.is_ascii_alphanumeric() || "-_./()".contains(letter);
        if !(3..=128).contains(&name.len()) || !name.chars().all(form) {
            let message = format!("The launch template name '{name}' is malformed.");
            return Err(Refusal::new("InvalidLaunchTemplateName.MalformedException", message));
        }
        if self.templates.values().any(|template| template.name == name) {
            let message = "Launch template name already in use.";
            return Err(Refusal::new(
                "InvalidLaunchTemplateName.AlreadyExistsException",
                message,
            ));
        }
        data.check()?;
        let id = self.ids.ec2("lt");
        let template = Template {
            id: id.clone(),
            name: name.to_owned(),
            created: now,
            data,
            tags,
            visible_at: now + self.timing.propagation,
        };
        Ok(self.templates.entry(id).or_insert(template))
    }

    /// The template that a call names, if other calls can see it already.
    pub fn template(&self, named: &TemplateRef, now: Timestamp) -> Result<&Template, Refusal> {
        let found = match named {
            TemplateRef::Id(id) => self.templates.get(id),
            TemplateRef::Name(name) => self.templates.values().find(|template| template.name == *name),
        };
        found
            .filter(|template| template.is_known(now))
            .ok_or_else(|| no_template(named))
    }

    pub fn delete_template(&mut self, named: &TemplateRef) -> Result<Template, Refusal> {
        // Whoever deletes a template has been told of it, however new it is.
        let id = self.template(named, Timestamp::MAX)?.id.clone();
        self.templates.remove(&id).ok_or_else(|| no_template(named))
    }
}

fn no_template(named: &TemplateRef) -> Refusal {
    match named {
        TemplateRef::Id(id) => Refusal::new(
            "InvalidLaunchTemplateId.NotFound",
            format!("The specified launch template, with template ID {id}, does not exist."),
        ),
        TemplateRef::Name(name) => Refusal::new(
            "InvalidLaunchTemplateName.NotFoundException",
            format!("The specified launch template, with template name {name}, does not exist."),
        ),
    }
}

impl Filtered for Template {
    fn tags(&self) -> &Tags {
        &self.tags
    }

    fn field(&self, name: &str) -> Option<Vec<String>> {
        let value = match name {
            "launch-template-name" => self.name.clone(),
            "launch-template-id" => self.id.clone(),
            "create-time" => self.created.to_string(),
            _ => return None,
        };
        Some(vec![value])
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::region::Plan;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn with_user_data(text: String) -> TemplateData {
        TemplateData {
            user_data: Some(text),
            ..TemplateData::default()
        }
    }

    #[test]
    fn user_data_has_its_form_and_its_limit() {
        let table = [
            (STANDARD.encode("#!/bin/bash"), None),
            (STANDARD.encode(vec![b'x'; USER_DATA_BYTES]), None),
            (
                STANDARD.encode(vec![b'x'; USER_DATA_BYTES + 1]),
                Some("User data is limited to 16384 bytes"),
            ),
            ("#!/bin/bash".to_owned(), Some("Invalid BASE64 encoding of user data.")),
        ];
        for (text, expected) in table {
            let refused = with_user_data(text).check().err().map(|refusal| refusal.message);
            assert_eq!(refused.as_deref(), expected);
        }
    }

    #[test]
    fn a_name_is_taken_once_and_seen_a_little_later() {
        let mut region = Region::new(Plan::new("us-west-2", "demo"), NOW);
        region.timing.propagation = SignedDuration::from_secs(5);
        let create = |region: &mut Region| {
            let made = region.create_template("karpenter.k8s.aws/1", TemplateData::default(), Tags::new(), NOW);
            made.map(|template| template.id.clone())
        };
        let id = create(&mut region).expect("a free name");
        let again = create(&mut region).expect_err("a taken name");
        assert_eq!(again.code, "InvalidLaunchTemplateName.AlreadyExistsException");
        let named = TemplateRef::Name("karpenter.k8s.aws/1".to_owned());
        let early = region.template(&named, NOW).expect_err("not to be seen yet");
        assert_eq!(early.code, "InvalidLaunchTemplateName.NotFoundException");
        assert!(region.template(&named, NOW + SignedDuration::from_secs(5)).is_ok());
        assert!(region.delete_template(&TemplateRef::Id(id.clone())).is_ok());
        let gone = region.delete_template(&TemplateRef::Id(id)).expect_err("deleted");
        assert_eq!(gone.code, "InvalidLaunchTemplateId.NotFound");
    }
}
