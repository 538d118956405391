//! The subnets and security groups of a class.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc, time::Duration};

use api::aws::EC2NodeClass;
use clock::Clock;
use jiff::SignedDuration;
use parking_lot::Mutex;

use super::{Addresses, ClassKey, class_key};
use crate::{
    cache::Cache,
    error::AwsError,
    ports::{Ec2, Filter, SecurityGroupInfo, SubnetInfo},
};

const GROUP_TTL: SignedDuration = SignedDuration::from_mins(1);

/// Finds the subnets of classes, and keeps count of their addresses.
pub struct Subnets {
    ec2: Arc<dyn Ec2>,
    found: Cache<ClassKey, Vec<SubnetInfo>>,
    clock: Arc<dyn Clock>,
    addresses: Mutex<Addresses>,
}

impl Subnets {
    pub fn new(ec2: Arc<dyn Ec2>, clock: Arc<dyn Clock>, refresh: Duration) -> Self {
        let ttl = SignedDuration::try_from(refresh).unwrap_or(SignedDuration::MAX);
        Self {
            ec2,
            found: Cache::new(clock.clone(), ttl),
            addresses: Mutex::new(Addresses::new(ttl)),
            clock,
        }
    }

    /// The subnets that the class selects, those with the most free addresses first.
    pub async fn of(&self, class: &EC2NodeClass) -> Result<Vec<SubnetInfo>, AwsError> {
        let fetch = async {
            let mut subnets: BTreeMap<String, SubnetInfo> = BTreeMap::new();
            for filters in subnet_filters(class) {
                for subnet in self.ec2.subnets(&filters).await? {
                    subnets.insert(subnet.id.clone(), subnet);
                }
            }
            let mut subnets: Vec<SubnetInfo> = subnets.into_values().collect();
            subnets.sort_by_key(|subnet| (Reverse(subnet.available_addresses), subnet.id.clone()));
            self.addresses.lock().refreshed(&subnets, self.clock.now());
            Ok(subnets)
        };
        self.found.get_or_fetch(class_key(class), fetch).await
    }

    /// The count of free addresses, under its lock.
    pub fn addresses<T>(&self, with: impl FnOnce(&mut Addresses) -> T) -> T {
        let mut addresses = self.addresses.lock();
        addresses.advance(self.clock.now());
        with(&mut addresses)
    }
}

/// Finds the security groups of classes.
pub struct SecurityGroups {
    ec2: Arc<dyn Ec2>,
    found: Cache<ClassKey, Vec<SecurityGroupInfo>>,
}

impl SecurityGroups {
    pub fn new(ec2: Arc<dyn Ec2>, clock: Arc<dyn Clock>) -> Self {
        Self {
            ec2,
            found: Cache::new(clock, GROUP_TTL),
        }
    }

    /// The groups that the class selects, by id.
    pub async fn of(&self, class: &EC2NodeClass) -> Result<Vec<SecurityGroupInfo>, AwsError> {
        let fetch = async {
            let mut groups: BTreeMap<String, SecurityGroupInfo> = BTreeMap::new();
            for filters in group_filters(class) {
                for group in self.ec2.security_groups(&filters).await? {
                    groups.insert(group.id.clone(), group);
                }
            }
            Ok(groups.into_values().collect())
        };
        self.found.get_or_fetch(class_key(class), fetch).await
    }
}

/// One listing for all ids, and one for the tags of each other term. An id beside tags counts alone.
fn subnet_filters(class: &EC2NodeClass) -> Vec<Vec<Filter>> {
    let terms = &class.spec.subnet_selector_terms;
    let ids: Vec<&str> = terms.iter().filter_map(|term| term.id.as_deref()).collect();
    let tagged = terms.iter().filter(|term| term.id.is_none());
    let tagged = tagged.map(|term| Filter::tags(term.tags.iter().flatten()));
    listed("subnet-id", ids)
        .into_iter()
        .chain(tagged.filter(|filters| !filters.is_empty()))
        .collect()
}

fn group_filters(class: &EC2NodeClass) -> Vec<Vec<Filter>> {
    let terms = &class.spec.security_group_selector_terms;
    let ids: Vec<&str> = terms.iter().filter_map(|term| term.id.as_deref()).collect();
    let without_id = || terms.iter().filter(|term| term.id.is_none());
    let names: Vec<&str> = without_id().filter_map(|term| term.name.as_deref()).collect();
    let tagged = without_id().filter(|term| term.name.is_none());
    let tagged = tagged.map(|term| Filter::tags(term.tags.iter().flatten()));
    listed("group-id", ids)
        .into_iter()
        .chain(listed("group-name", names))
        .chain(tagged.filter(|filters| !filters.is_empty()))
        .collect()
}

/// A term without anything would select all there is; it selects nothing instead.
fn listed(name: &str, values: Vec<&str>) -> Option<Vec<Filter>> {
    (!values.is_empty()).then(|| vec![Filter::new(name, values)])
}

#[cfg(test)]
mod tests {
    use api::aws::{SecurityGroupSelectorTerm, SubnetSelectorTerm, Tags};

    use super::*;
    use crate::testing::{fake::FakeAws, samples};

    fn tags(pairs: &[(&str, &str)]) -> Option<Tags> {
        let pair = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        Some(pairs.iter().map(pair).collect())
    }

    fn subnet_term(id: Option<&str>, pairs: &[(&str, &str)]) -> SubnetSelectorTerm {
        SubnetSelectorTerm {
            id: id.map(str::to_owned),
            tags: (!pairs.is_empty()).then(|| tags(pairs)).flatten(),
        }
    }

    fn region() -> FakeAws {
        let aws = FakeAws::new();
        aws.add_subnet("subnet-1", "us-west-2a", 10, &[("team", "a"), ("env", "x")]);
        aws.add_subnet("subnet-2", "us-west-2b", 100, &[("team", "a")]);
        aws.add_subnet("subnet-3", "us-west-2c", 100, &[("team", "b")]);
        aws.add_group("sg-1", "one", &[("team", "a")]);
        aws.add_group("sg-2", "two", &[("team", "b")]);
        aws
    }

    /// AW24.4.1, AW24.4.3
    #[tokio::test(start_paused = true)]
    async fn subnets_are_the_union_of_what_the_terms_find() {
        let aws = region();
        let table: [(&[SubnetSelectorTerm], &str); 6] = [
            (&[subnet_term(Some("subnet-1"), &[])], "subnet-1"),
            (
                &[subnet_term(Some("subnet-1"), &[]), subnet_term(Some("subnet-3"), &[])],
                "subnet-3 subnet-1",
            ),
            (&[subnet_term(None, &[("team", "a")])], "subnet-2 subnet-1"),
            (&[subnet_term(None, &[("team", "*"), ("env", "x")])], "subnet-1"),
            (
                &[subnet_term(Some("subnet-3"), &[]), subnet_term(None, &[("team", "a")])],
                "subnet-2 subnet-3 subnet-1",
            ),
            (&[subnet_term(Some("subnet-3"), &[("team", "a")])], "subnet-3"),
        ];
        for (generation, (terms, expected)) in (1..).zip(table) {
            let subnets = Subnets::new(aws.ports().ec2, aws.clock(), Duration::from_secs(60));
            let mut class = samples::class();
            class.metadata.generation = Some(generation);
            class.spec.subnet_selector_terms = terms.to_vec();
            let found = subnets.of(&class).await.unwrap();
            let ids: Vec<&str> = found.iter().map(|subnet| subnet.id.as_str()).collect();
            assert_eq!(ids.join(" "), expected, "{terms:?}");
        }
    }

    /// AW24.4.5
    #[tokio::test(start_paused = true)]
    async fn security_groups_are_found_by_id_name_and_tags() {
        let aws = region();
        let term = |id: Option<&str>, name: Option<&str>, team: Option<&str>| SecurityGroupSelectorTerm {
            id: id.map(str::to_owned),
            name: name.map(str::to_owned),
            tags: team.and_then(|team| tags(&[("team", team)])),
        };
        let table: [(&[SecurityGroupSelectorTerm], &str); 4] = [
            (&[term(Some("sg-2"), None, None)], "sg-2"),
            (&[term(None, Some("one"), None)], "sg-1"),
            (
                &[term(None, None, Some("b")), term(None, Some("one"), None)],
                "sg-1 sg-2",
            ),
            (&[term(None, None, Some("c"))], ""),
        ];
        for (terms, expected) in table {
            let groups = SecurityGroups::new(aws.ports().ec2, aws.clock());
            let mut class = samples::class();
            class.spec.security_group_selector_terms = terms.to_vec();
            let found = groups.of(&class).await.unwrap();
            let ids: Vec<&str> = found.iter().map(|group| group.id.as_str()).collect();
            assert_eq!(ids.join(" "), expected, "{terms:?}");
        }
    }

    /// AW24.4.4
    #[tokio::test(start_paused = true)]
    async fn an_edited_selector_is_asked_at_once_and_others_once_a_minute() {
        let aws = region();
        let subnets = Subnets::new(aws.ports().ec2, aws.clock(), Duration::from_secs(60));
        let mut class = samples::class();
        class.spec.subnet_selector_terms = vec![subnet_term(Some("subnet-1"), &[])];
        subnets.of(&class).await.unwrap();
        subnets.of(&class).await.unwrap();
        assert_eq!(aws.calls("DescribeSubnets"), 1);
        class.metadata.generation = Some(2);
        class.spec.subnet_selector_terms = vec![subnet_term(Some("subnet-9"), &[])];
        assert!(subnets.of(&class).await.unwrap().is_empty());
        assert_eq!(aws.calls("DescribeSubnets"), 2);
    }
}
