//! The VPC of the cluster: a private subnet in each of three zones and the nodes' security group.

use super::{Plan, Tags, filter::Filtered, ids::Ids};

/// The letters of the region's zones; instances are sold in all of them, the cluster's subnets are in the first three.
pub const ZONES: [char; 4] = ['a', 'b', 'c', 'd'];
/// A subnet of 4096 addresses, of which AWS keeps five.
const ADDRESSES: u32 = 4091;

#[derive(Clone, Debug)]
pub struct Subnet {
    pub id: String,
    pub vpc: String,
    pub zone: String,
    pub zone_id: String,
    pub cidr: String,
    pub available: u32,
    pub tags: Tags,
    /// The third number of its addresses' first block.
    block: u32,
    next_address: u32,
    freed: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Group {
    pub id: String,
    pub name: String,
    pub description: String,
    pub vpc: String,
    pub tags: Tags,
}

#[derive(Clone, Debug)]
pub struct Network {
    pub vpc: String,
    pub subnets: Vec<Subnet>,
    pub groups: Vec<Group>,
}

impl Network {
    pub(super) fn of(plan: &Plan, ids: &mut Ids) -> Self {
        let vpc = ids.ec2("vpc");
        let discovery = ("karpenter.sh/discovery".to_owned(), plan.cluster.clone());
        let subnet = |(index, letter): (u32, &char), ids: &mut Ids| Subnet {
            id: ids.ec2("subnet"),
            vpc: vpc.clone(),
            zone: format!("{}{letter}", plan.region),
            zone_id: zone_id(&plan.region, *letter),
            cidr: format!("10.0.{}.0/20", index * 16),
            available: ADDRESSES,
            tags: Tags::from([
                discovery.clone(),
                ("Name".to_owned(), format!("{}-private-{letter}", plan.cluster)),
            ]),
            block: index * 16,
            next_address: 4,
            freed: Vec::new(),
        };
        let subnets = (0..3).zip(&ZONES).map(|place| subnet(place, ids)).collect();
        let name = format!("{}-node", plan.cluster);
        let group = Group {
            id: ids.ec2("sg"),
            description: "nodes of the cluster".to_owned(),
            vpc: vpc.clone(),
            tags: Tags::from([discovery.clone(), ("Name".to_owned(), name.clone())]),
            name,
        };
        Self {
            vpc: vpc.clone(),
            subnets,
            groups: vec![group],
        }
    }

    pub fn subnet(&self, id: &str) -> Option<&Subnet> {
        self.subnets.iter().find(|subnet| subnet.id == id)
    }

    pub fn group(&self, id: &str) -> Option<&Group> {
        self.groups.iter().find(|group| group.id == id)
    }

    pub(super) fn take_address(&mut self, subnet: &str) -> String {
        let subnet = self.subnets.iter_mut().find(|candidate| candidate.id == subnet);
        subnet.map(Subnet::take).unwrap_or_default()
    }

    pub(super) fn give_back(&mut self, subnet: &str, address: &str) {
        if let Some(subnet) = self.subnets.iter_mut().find(|candidate| candidate.id == subnet) {
            subnet.available += 1;
            subnet.freed.push(address.to_owned());
        }
    }
}

impl Subnet {
    fn take(&mut self) -> String {
        self.available = self.available.saturating_sub(1);
        if let Some(address) = self.freed.pop() {
            return address;
        }
        let number = self.next_address;
        self.next_address += 1;
        format!("10.0.{}.{}", self.block + number / 256, number % 256)
    }
}

/// `usw2-az1` for `us-west-2` and `a`. In real accounts the letters are shuffled; here they are not.
pub fn zone_id(region: &str, letter: char) -> String {
    let mut parts = region.split('-');
    let country = parts.next().unwrap_or_default();
    let direction: String = parts
        .next()
        .map(|direction| abbreviated(direction).to_owned())
        .unwrap_or_default();
    let number = parts.next().unwrap_or_default();
    let place = ZONES.iter().position(|zone| *zone == letter).unwrap_or(0) + 1;
    format!("{country}{direction}{number}-az{place}")
}

fn abbreviated(direction: &str) -> &str {
    match direction {
        "northeast" => "ne",
        "northwest" => "nw",
        "southeast" => "se",
        "southwest" => "sw",
        other => other.get(..1).unwrap_or_default(),
    }
}

impl Filtered for Subnet {
    fn tags(&self) -> &Tags {
        &self.tags
    }

    fn field(&self, name: &str) -> Option<Vec<String>> {
        let value = match name {
            "subnet-id" => self.id.clone(),
            "vpc-id" => self.vpc.clone(),
            "availability-zone" | "availabilityZone" => self.zone.clone(),
            "availability-zone-id" | "availabilityZoneId" => self.zone_id.clone(),
            "cidr-block" | "cidr" => self.cidr.clone(),
            "state" => "available".to_owned(),
            _ => return None,
        };
        Some(vec![value])
    }
}

impl Filtered for Group {
    fn tags(&self) -> &Tags {
        &self.tags
    }

    fn field(&self, name: &str) -> Option<Vec<String>> {
        let value = match name {
            "group-id" => self.id.clone(),
            "group-name" => self.name.clone(),
            "vpc-id" => self.vpc.clone(),
            "description" => self.description.clone(),
            _ => return None,
        };
        Some(vec![value])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_private_subnets_can_be_discovered() {
        let network = Network::of(&Plan::new("us-west-2", "demo"), &mut Ids::default());
        let seen: Vec<_> = network
            .subnets
            .iter()
            .map(|subnet| (subnet.zone.as_str(), subnet.zone_id.as_str(), subnet.cidr.as_str()))
            .collect();
        let expected = [
            ("us-west-2a", "usw2-az1", "10.0.0.0/20"),
            ("us-west-2b", "usw2-az2", "10.0.16.0/20"),
            ("us-west-2c", "usw2-az3", "10.0.32.0/20"),
        ];
        assert_eq!(seen, expected);
        for tags in network
            .subnets
            .iter()
            .map(|subnet| &subnet.tags)
            .chain([&network.groups[0].tags])
        {
            assert_eq!(tags.get("karpenter.sh/discovery").map(String::as_str), Some("demo"));
        }
    }

    #[test]
    fn an_address_that_comes_back_is_given_out_again() {
        let mut network = Network::of(&Plan::new("us-west-2", "demo"), &mut Ids::default());
        let subnet = network.subnets[1].id.clone();
        let first = network.take_address(&subnet);
        let second = network.take_address(&subnet);
        assert_eq!((first.as_str(), second.as_str()), ("10.0.16.4", "10.0.16.5"));
        assert_eq!(network.subnets[1].available, ADDRESSES - 2);
        network.give_back(&subnet, &first);
        assert_eq!(network.take_address(&subnet), first);
    }

    #[test]
    fn zones_have_ids_as_aws_names_them() {
        assert_eq!(zone_id("eu-central-1", 'b'), "euc1-az2");
        assert_eq!(zone_id("ap-southeast-2", 'c'), "apse2-az3");
    }
}
