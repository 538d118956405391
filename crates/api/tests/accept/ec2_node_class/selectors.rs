//! Selector terms.

use serde_json::{Value, json};

use super::{AMIS, FAMILY};
use crate::row::{Table, drop, set};

const SUBNETS: &str = "spec.subnetSelectorTerms";
const GROUPS: &str = "spec.securityGroupSelectorTerms";
const RESERVATIONS: &str = "spec.capacityReservationSelectorTerms";
const PLACEMENT: &str = "spec.placementGroupSelector";

const NO_EMPTY_TAGS: &str = "empty tag keys or values aren't supported";

/// AW24.2.6
pub fn rows(t: &mut Table) {
    subnets(t);
    security_groups(t);
    reservations(t);
    amis(t);
    aliases(t);
    t.admits("AP17.5.31", [set(PLACEMENT, json!({ "name": "group" }))]);
    t.admits("AP17.5.31", [set(PLACEMENT, json!({ "id": "pg-12345749" }))]);
    t.refuses(
        "AP17.5.32",
        "expected at least one, got none, ['name', 'id']",
        [set(PLACEMENT, json!({}))],
    );
    t.refuses(
        "AP17.5.32",
        "'name' and 'id' are mutually exclusive",
        [set(PLACEMENT, json!({ "name": "group", "id": "pg-12345749" }))],
    );
    t.refuses(
        "AP17.5.32",
        "spec.placementGroupSelector.name",
        [set(PLACEMENT, json!({ "name": "" }))],
    );
}

fn tags() -> Value {
    json!({ "k": "v" })
}

/// Terms with an empty tag key or value, alone and behind a good one.
fn empty_tags() -> [Value; 4] {
    [
        json!([{ "tags": { "k": "" } }]),
        json!([{ "tags": { "": "v" } }]),
        json!([{ "tags": { "k": "v" } }, { "tags": { "k": "v" } }, { "tags": { "k": "" } }]),
        json!([{ "tags": { "k": "v" } }, { "tags": { "k": "v" } }, { "tags": { "": "v" } }]),
    ]
}

fn subnets(t: &mut Table) {
    t.admits("AP17.5.13", [set(SUBNETS, json!([{ "tags": tags() }]))]);
    t.admits("AP17.5.13", [set(SUBNETS, json!([{ "id": "subnet-12345749" }]))]);
    t.refuses("AP17.5.14", "spec.subnetSelectorTerms: Required value", [drop(SUBNETS)]);
    t.refuses("AP17.5.14", SUBNETS, [set(SUBNETS, Value::Null)]);
    t.refuses(
        "AP17.5.14",
        "subnetSelectorTerms cannot be empty",
        [set(SUBNETS, json!([]))],
    );
    t.refuses(
        "AP17.5.14",
        "expected at least one, got none, ['tags', 'id']",
        [set(SUBNETS, json!([{}]))],
    );
    for terms in empty_tags() {
        t.refuses("AP17.5.15", NO_EMPTY_TAGS, [set(SUBNETS, terms)]);
    }
    let both = json!({ "id": "subnet-12345749", "tags": tags() });
    t.refuses("AP17.5.16", "'id' is mutually exclusive", [set(SUBNETS, json!([both]))]);
    t.admits("AP17.5.17", [set(SUBNETS, json!([both, { "tags": tags() }]))]);
    t.admits("AP17.5.18", [set(SUBNETS, json!([{ "tags": {} }]))]);
}

fn security_groups(t: &mut Table) {
    for term in [
        json!({ "tags": tags() }),
        json!({ "id": "sg-12345749" }),
        json!({ "name": "group" }),
    ] {
        t.admits("AP17.5.19", [set(GROUPS, json!([term]))]);
    }
    for term in [
        json!({ "id": "sg-12345749", "tags": tags() }),
        json!({ "id": "sg-12345749", "name": "group" }),
        json!({ "name": "group", "tags": tags() }),
    ] {
        t.refuses("AP17.5.20", "is mutually exclusive", [set(GROUPS, json!([term]))]);
    }
    t.refuses(
        "AP17.5.20",
        "spec.securityGroupSelectorTerms: Required value",
        [drop(GROUPS)],
    );
    t.refuses(
        "AP17.5.20",
        "securityGroupSelectorTerms cannot be empty",
        [set(GROUPS, json!([]))],
    );
    t.refuses(
        "AP17.5.20",
        "expected at least one, got none, ['tags', 'id', 'name']",
        [set(GROUPS, json!([{}]))],
    );
    for terms in empty_tags() {
        t.refuses("AP17.5.20", NO_EMPTY_TAGS, [set(GROUPS, terms)]);
    }
}

fn reservations(t: &mut Table) {
    let owner = "012345678901";
    for term in [
        json!({ "tags": tags() }),
        json!({ "id": "cr-12345749" }),
        json!({ "instanceMatchCriteria": "open" }),
        json!({ "instanceMatchCriteria": "targeted" }),
        json!({ "ownerID": owner, "tags": tags() }),
        json!({ "instanceMatchCriteria": "open", "tags": tags() }),
        json!({ "instanceMatchCriteria": "open", "ownerID": owner, "tags": tags() }),
    ] {
        t.admits("AP17.5.21", [set(RESERVATIONS, json!([term]))]);
    }
    t.admits("AP17.5.21", [set(RESERVATIONS, Value::Null)]);
    for (term, because) in [
        (
            json!({ "id": "r-12345749" }),
            "spec.capacityReservationSelectorTerms[0].id",
        ),
        (json!({}), "expected at least one, got none"),
        (json!({ "ownerID": owner }), "expected at least one, got none"),
        (
            json!({ "id": "cr-12345749", "tags": tags() }),
            "'id' is mutually exclusive",
        ),
        (
            json!({ "id": "cr-12345749", "ownerID": owner }),
            "'id' is mutually exclusive",
        ),
        (
            json!({ "id": "cr-12345749", "instanceMatchCriteria": "open" }),
            "'id' is mutually exclusive",
        ),
        (
            json!({ "ownerID": "01234567890", "tags": tags() }),
            "spec.capacityReservationSelectorTerms[0].ownerID",
        ),
        (
            json!({ "instanceMatchCriteria": "invalid" }),
            "spec.capacityReservationSelectorTerms[0].instanceMatchCriteria",
        ),
    ] {
        t.refuses("AP17.5.22", because, [set(RESERVATIONS, json!([term]))]);
    }
    for terms in empty_tags() {
        t.refuses("AP17.5.22", NO_EMPTY_TAGS, [set(RESERVATIONS, terms)]);
    }
    t.refuses(
        "AP17.5.23",
        "'id' is mutually exclusive",
        [set(RESERVATIONS, json!([]))],
    );
}

/// AW24.2.5
fn amis(t: &mut Table) {
    let family = || set(FAMILY, "AL2023");
    for term in [
        json!({ "tags": tags() }),
        json!({ "id": "ami-12345749" }),
        json!({ "name": "image" }),
        json!({ "name": "image", "owner": "self" }),
        json!({ "owner": "self", "tags": tags() }),
    ] {
        t.admits("AP17.5.24", [family(), set(AMIS, json!([term]))]);
    }
    t.admits("AP17.5.24", [set(AMIS, json!([{ "alias": "al2023@latest" }]))]);
    t.admits(
        "AP17.5.25",
        [family(), set(AMIS, json!([{ "ssmParameter": "/aws/service/image" }]))],
    );
    t.admits(
        "AP17.5.25",
        [
            family(),
            set(
                AMIS,
                json!([{ "id": "ami-12345749", "ssmParameter": "/aws/service/image" }]),
            ),
        ],
    );
    t.refuses(
        "AP17.5.26",
        "expected at least one, got none",
        [family(), set(AMIS, json!([{}]))],
    );
    t.refuses(
        "AP17.5.26",
        "expected at least one, got none",
        [family(), set(AMIS, json!([{ "owner": "self" }]))],
    );
    for terms in empty_tags() {
        t.refuses("AP17.5.26", NO_EMPTY_TAGS, [family(), set(AMIS, terms)]);
    }
    for (field, value) in [
        ("alias", json!("al2023@latest")),
        ("tags", tags()),
        ("name", json!("image")),
        ("owner", json!("self")),
    ] {
        let mut with_id = json!({ "id": "ami-12345749" });
        with_id[field] = value;
        t.refuses(
            "AP17.5.27",
            "'id' is mutually exclusive",
            [family(), set(AMIS, json!([with_id]))],
        );
    }
    for (field, value) in [
        ("id", json!("ami-12345749")),
        ("tags", tags()),
        ("name", json!("image")),
        ("owner", json!("self")),
    ] {
        let mut with_alias = json!({ "alias": "al2023@latest" });
        with_alias[field] = value;
        t.refuses(
            "AP17.5.27",
            "'alias' is mutually exclusive",
            [set(AMIS, json!([with_alias]))],
        );
    }
    t.refuses(
        "AP17.5.28",
        "'alias' is mutually exclusive",
        [set(
            AMIS,
            json!([{ "alias": "al2023@latest" }, { "id": "ami-12345749" }]),
        )],
    );
}

/// AW24.2.4
fn aliases(t: &mut Table) {
    let alias = |alias: &str| [set(AMIS, json!([{ "alias": alias }]))];
    for text in [
        "al2@latest",
        "al2@v20240625",
        "al2023@latest",
        "al2023@v20240625",
        "bottlerocket@latest",
        "bottlerocket@1.10.0",
        "windows2019@latest",
        "windows2022@latest",
        "windows2025@latest",
    ] {
        t.admits("AP17.5.29", alias(text));
    }
    for text in ["@latest", "al2023", "al2023@", "al2023-latest"] {
        t.refuses("AP17.5.30", "'alias' is improperly formatted", alias(text));
    }
    t.refuses("AP17.5.30", "family is not supported", alias("ubuntu@latest"));
    for text in ["windows2019@v1.0.0", "windows2022@v1.0.0", "windows2025@v1.0.0"] {
        t.refuses(
            "AP17.5.30",
            "windows families may only specify version 'latest'",
            alias(text),
        );
    }
    t.refuses(
        "AP17.5.30",
        "spec.amiSelectorTerms[0].alias",
        alias("al2023@v2024062520240625202406250"),
    );
}
