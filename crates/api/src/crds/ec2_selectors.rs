//! The selector terms of an EC2NodeClass.
//!
//! Exclusivity in the first three lists says `!all` where one would expect `all not`: the list is
//! refused only if every term offends, and an empty list of reservations is refused. Existing
//! objects depend on it.

use super::schema::{Fact, Schema, cel, max_items, max_length, max_properties, min_items, min_length, pattern};

pub const RESERVATION_ID: &str = "^cr-[0-9a-z]+$";
pub const ACCOUNT_ID: &str = "^[0-9]{12}$";

pub fn selectors(schema: Schema) -> Schema {
    let schema = schema
        .at("spec.subnetSelectorTerms", [max_items(30)])
        .at("spec.subnetSelectorTerms", [
            cel("self.size() != 0", "subnetSelectorTerms cannot be empty"),
            cel(
                "self.all(x, has(x.tags) || has(x.id))",
                "expected at least one, got none, ['tags', 'id']",
            ),
            cel(
                "!self.all(x, has(x.id) && has(x.tags))",
                "'id' is mutually exclusive, cannot be set with a combination of other fields in a subnet selector term",
            ),
        ])
        .at("spec.subnetSelectorTerms[].tags", tag_selector())
        .at("spec.subnetSelectorTerms[].id", [pattern("subnet-[0-9a-z]+")]);
    placement_group(amis(capacity_reservations(security_groups(schema))))
}

fn tag_selector() -> [Fact; 2] {
    [
        max_properties(20),
        cel(
            "self.all(k, k != '' && self[k] != '')",
            "empty tag keys or values aren't supported",
        ),
    ]
}

fn security_groups(schema: Schema) -> Schema {
    schema
        .at("spec.securityGroupSelectorTerms", [
            max_items(30),
            cel("self.size() != 0", "securityGroupSelectorTerms cannot be empty"),
            cel(
                "self.all(x, has(x.tags) || has(x.id) || has(x.name))",
                "expected at least one, got none, ['tags', 'id', 'name']",
            ),
            cel(
                "!self.all(x, has(x.id) && (has(x.tags) || has(x.name)))",
                "'id' is mutually exclusive, cannot be set with a combination of other fields in a security group selector term",
            ),
            cel(
                "!self.all(x, has(x.name) && (has(x.tags) || has(x.id)))",
                "'name' is mutually exclusive, cannot be set with a combination of other fields in a security group selector term",
            ),
        ])
        .at("spec.securityGroupSelectorTerms[].tags", tag_selector())
        .at("spec.securityGroupSelectorTerms[].id", [pattern("sg-[0-9a-z]+")])
}

fn capacity_reservations(schema: Schema) -> Schema {
    schema
        .at("spec.capacityReservationSelectorTerms", [
            max_items(30),
            cel(
                "self.all(x, has(x.tags) || has(x.id) || has(x.instanceMatchCriteria))",
                "expected at least one, got none, ['tags', 'id', 'instanceMatchCriteria']",
            ),
            cel(
                "!self.all(x, has(x.id) && (has(x.tags) || has(x.ownerID) || has(x.instanceMatchCriteria)))",
                "'id' is mutually exclusive, cannot be set along with other fields in a capacity reservation selector term",
            ),
        ])
        .at("spec.capacityReservationSelectorTerms[].tags", tag_selector())
        .at("spec.capacityReservationSelectorTerms[].id", [pattern(RESERVATION_ID)])
        .at("spec.capacityReservationSelectorTerms[].ownerID", [pattern(ACCOUNT_ID)])
}

fn amis(schema: Schema) -> Schema {
    schema
        .at("spec.amiSelectorTerms", [
            min_items(1),
            max_items(30),
            cel(
                "self.all(x, has(x.tags) || has(x.id) || has(x.name) || has(x.alias) || has(x.ssmParameter))",
                "expected at least one, got none, ['tags', 'id', 'name', 'alias', 'ssmParameter']",
            ),
            cel(
                "!self.exists(x, has(x.id) && (has(x.alias) || has(x.tags) || has(x.name) || has(x.owner)))",
                "'id' is mutually exclusive, cannot be set with a combination of other fields in amiSelectorTerms",
            ),
            cel(
                "!self.exists(x, has(x.alias) && (has(x.id) || has(x.tags) || has(x.name) || has(x.owner)))",
                "'alias' is mutually exclusive, cannot be set with a combination of other fields in amiSelectorTerms",
            ),
            cel(
                "!(self.exists(x, has(x.alias)) && self.size() != 1)",
                "'alias' is mutually exclusive, cannot be set with a combination of other amiSelectorTerms",
            ),
        ])
        .at("spec.amiSelectorTerms[].tags", tag_selector())
        .at("spec.amiSelectorTerms[].id", [pattern("ami-[0-9a-z]+")])
        .at("spec.amiSelectorTerms[].alias", [
            max_length(30),
            cel(
                "self.matches('^[a-zA-Z0-9]+@.+$')",
                "'alias' is improperly formatted, must match the format 'family@version'",
            ),
            cel(
                "self.split('@')[0] in ['al2','al2023','bottlerocket','windows2019','windows2022','windows2025']",
                "family is not supported, must be one of the following: 'al2', 'al2023', 'bottlerocket', 'windows2019', 'windows2022', 'windows2025'",
            ),
            cel(
                "self.split('@')[0] in ['windows2019','windows2022','windows2025'] ? self.split('@')[1] == 'latest' : true",
                "windows families may only specify version 'latest'",
            ),
        ])
}

fn placement_group(schema: Schema) -> Schema {
    schema
        .at(
            "spec.placementGroupSelector",
            [
                cel(
                    "has(self.name) || has(self.id)",
                    "expected at least one, got none, ['name', 'id']",
                ),
                cel(
                    "!(has(self.name) && has(self.id))",
                    "'name' and 'id' are mutually exclusive",
                ),
            ],
        )
        .at("spec.placementGroupSelector.name", [min_length(1)])
        .at("spec.placementGroupSelector.id", [pattern("^pg-[0-9a-z]+$")])
}
