//! The network interfaces of a template.

use api::aws::{EC2NodeClass, InterfaceType};

use crate::{class_view, ports::Interface};

/// As configured; or one per EFA device; or a single one.
pub(super) fn interfaces(class: &EC2NodeClass, efa: i64, ipv6: bool) -> Vec<Interface> {
    let configured = class_view::interfaces(class);
    if !configured.is_empty() {
        let one = |wanted: &api::aws::NetworkInterface| Interface {
            card: Some(wanted.network_card_index),
            device: wanted.device_index,
            kind: Some(wanted.interface_type.to_string()),
            ..match wanted.interface_type {
                InterfaceType::EfaOnly => bare(class),
                _ => addressed(class, ipv6),
            }
        };
        return configured.iter().map(one).collect();
    }
    if efa > 0 {
        let one = |card: i64| Interface {
            card: i32::try_from(card).ok(),
            // Every card has a device 0, but the first card's is the instance's main interface.
            device: i32::from(card != 0),
            kind: Some("efa".to_owned()),
            ..addressed(class, ipv6)
        };
        return (0..efa).map(one).collect();
    }
    vec![addressed(class, ipv6)]
}

/// An interface that carries no IP traffic.
fn bare(class: &EC2NodeClass) -> Interface {
    Interface {
        groups: class_view::security_groups(class),
        ..Interface::default()
    }
}

fn addressed(class: &EC2NodeClass, ipv6: bool) -> Interface {
    let spec = &class.spec;
    let prefixes = |wanted: bool| spec.ip_prefix_count.filter(|_| wanted);
    Interface {
        public_ip: spec.associate_public_ip_address,
        ipv4_prefixes: prefixes(!ipv6),
        ipv6_prefixes: prefixes(ipv6),
        primary_ipv6: ipv6,
        connection_tracking: spec.connection_tracking.clone(),
        ..bare(class)
    }
}
