//! Launch templates that a user made, for classes of the time when an object could name one.
//!
//! Image, user data, profile, security groups and volumes are the template's; types, zones, subnets and tags come with the
//! request for the fleet. Nothing is made and nothing is removed.

use api::{aws::EC2NodeClass, labels::compatibility};
use model::InstanceType;

use super::template::Plan;
use crate::ports::{FleetRequest, Tags, TemplateData};

/// What a class that names no version means: the version that its owner has made the default.
const DEFAULT_VERSION: &str = "$Default";

/// The template that a class names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomTemplate {
    pub name: String,
    pub version: String,
}

impl CustomTemplate {
    /// From the annotation of the class, `name` or `name:version`. Names of templates have no colon.
    pub fn of(class: &EC2NodeClass) -> Option<Self> {
        let annotations = class.metadata.annotations.as_ref()?;
        let written = annotations.get(compatibility::LAUNCH_TEMPLATE)?;
        let (name, version) = written.split_once(':').unwrap_or((written, ""));
        (!name.is_empty()).then(|| Self {
            name: name.to_owned(),
            version: if version.is_empty() { DEFAULT_VERSION } else { version }.to_owned(),
        })
    }

    /// The template as it is, for all types.
    pub fn plan(&self, types: &[InstanceType]) -> Plan {
        Plan {
            name: self.name.clone(),
            tags: Tags::default(),
            data: TemplateData::default(),
            types: types.iter().map(|shape| shape.name.to_string()).collect(),
            reservation: None,
        }
    }

    /// The version, and no image in the place of the template's own.
    pub fn put_on(&self, request: &mut FleetRequest) {
        for group in &mut request.groups {
            group.version = Some(self.version.clone());
            group.overrides.iter_mut().for_each(|wanted| wanted.image_id = None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(annotation: &str, expected: Option<(&str, &str)>) {
        let mut class = EC2NodeClass::default();
        let annotations = [(compatibility::LAUNCH_TEMPLATE.to_owned(), annotation.to_owned())];
        class.metadata.annotations = Some(annotations.into());
        let found = CustomTemplate::of(&class);
        let found = found.as_ref().map(|found| (&*found.name, &*found.version));
        assert_eq!(found, expected, "{annotation}");
    }

    #[test]
    fn a_class_names_a_template_and_may_name_a_version() {
        check("mine", Some(("mine", "$Default")));
        check("mine:3", Some(("mine", "3")));
        check("mine:$Latest", Some(("mine", "$Latest")));
        check("", None);
        assert_eq!(CustomTemplate::of(&EC2NodeClass::default()), None);
    }
}
