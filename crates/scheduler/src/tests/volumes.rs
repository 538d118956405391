//! Volumes: where pods with storage go. What claims mean is tested where they are resolved.

use super::{plan_of, story::Story};

fn standard(text: &str) -> String {
    format!("catalog standard\npool default\n{text}")
}

#[track_caller]
fn zone_of(situation: &str) -> Option<String> {
    let plan = plan_of(&standard(situation));
    assert_eq!(plan.launches.len() + plan.refusals.len(), 1, "{plan}");
    plan.launches.first().map(|launch| launch.choice.zone.to_string())
}

/// SC15.14.1, SC15.14.13
#[test]
fn a_pod_whose_storage_is_not_there_hurts_nobody_else() {
    let plan = plan_of(&standard(
        "class now immediate
         class wait
         volume going gone
         pvc no-class class=ghost
         pvc no-volume volume=ghost
         pvc now class=now
         pvc gone class=wait gone
         pvc lost class=wait lost
         pvc going volume=going
         pod a cpu=10m volume=missing
         pod b cpu=10m volume=no-class
         pod c cpu=10m volume=no-volume
         pod d cpu=10m volume=now
         pod e cpu=10m volume=gone
         pod f cpu=10m volume=lost
         pod g cpu=10m volume=going
         pod h cpu=10m scratch=tmp
         pod fine cpu=10m",
    ));
    assert_eq!((plan.launches.len(), plan.refusals.len()), (1, 8), "{plan}");
    assert_eq!(&*plan.launches[0].pods[0].name, "fine");
}

/// SC15.14.2, SC15.14.14
#[test]
fn a_bound_claim_needs_no_class() {
    for claim in [
        "pvc data volume=v",
        "pvc data volume=v class=",
        "pvc data volume=v class=ghost",
    ] {
        assert!(
            zone_of(&format!("volume v\n{claim}\npod db cpu=1 volume=data")).is_some(),
            "{claim}"
        );
    }
    for claim in ["pvc data", "pvc data class=", "pvc data volume=v unconfirmed"] {
        assert_eq!(
            zone_of(&format!("volume v\n{claim}\npod db cpu=1 volume=data")),
            None,
            "{claim}"
        );
    }
}

/// SC15.14.3, SC15.14.4: as claims, and as volumes that live and die with their pod.
#[test]
fn zones_of_storage_and_pod_are_intersected() {
    let class = "class wait at=zone:In:test-zone-2|test-zone-3";
    let bound = "volume there at=zone:In:test-zone-3";
    let either = "term=zone:In:test-zone-1|test-zone-3";
    let first = "select=zone:In:test-zone-1";
    for (storage, claim) in [(class, "class=wait"), (bound, "volume=there")] {
        for (name, volume) in [("data", "volume=data"), ("db-tmp", "scratch=tmp")] {
            let situation = |pod: &str| format!("{storage}\npvc {name} {claim}\npod db cpu=1 {volume} {pod}");
            assert_eq!(
                zone_of(&situation(either)).as_deref(),
                Some("test-zone-3"),
                "{}",
                situation(either)
            );
            assert_eq!(zone_of(&situation(first)), None, "{}", situation(first));
        }
    }
}

/// SC15.14.5, SC15.14.6
#[test]
fn disks_of_one_machine_do_not_tie_a_pod_to_it() {
    let situation = |volume: &str| format!("volume v {volume}\npvc data volume=v\npod db cpu=1 volume=data");
    assert!(zone_of(&situation("local at=host:In:n1")).is_some());
    assert!(zone_of(&situation("local at=host:In:n1 at=zone:In:nowhere")).is_some());
    assert_eq!(zone_of(&situation("driver=ebs at=host:In:n1")), None);
}

/// SC15.14.7
#[test]
fn alternatives_of_a_volume_let_loners_keep_apart() {
    let volume = "volume v at=zone:In:test-zone-1 at=zone:In:test-zone-2\npvc data volume=v";
    let class = "class wait at=zone:In:test-zone-1 at=zone:In:test-zone-2\npvc data class=wait";
    for storage in [volume, class] {
        let mut story = Story::new(&standard(storage));
        let plan = story.provision("pod db cpu=1 label:app=db apart=zone:app=db volume=data count=2");
        assert!(plan.refusals.is_empty(), "{plan}");
        let zones: Vec<String> = story.spread("zone", ("app", "db")).into_keys().collect();
        assert_eq!(zones, ["test-zone-1", "test-zone-2"]);
    }
}

/// SC15.14.8
#[test]
fn several_volumes_meet_in_the_one_zone_they_share() {
    let zone = zone_of(
        "volume a at=zone:In:test-zone-1 at=zone:In:test-zone-2
         volume b at=zone:In:test-zone-3 at=zone:In:test-zone-2
         pvc a volume=a
         pvc b volume=b
         pod db cpu=1 volume=a volume=b",
    );
    assert_eq!(zone.as_deref(), Some("test-zone-2"));
}

/// SC15.14.9, SC15.14.10, SC15.14.11: limits hold on nodes that are there; new ones have none that anybody knows.
#[test]
fn a_node_attaches_no_more_volumes_than_it_can() {
    let node = "node n1 cpu=100 memory=100Gi attach:ebs.csi.aws.com=10\n";
    let pods = |class: &str| {
        let pods =
            (1..=6).map(|n| format!("pvc a{n} {class}\npvc b{n} {class}\npod db{n} cpu=10m volume=a{n} volume=b{n}\n"));
        format!(
            "catalog standard\npool default\n{node}class ebs driver=ebs.csi.aws.com default\nclass tree driver=kubernetes.io/aws-ebs\n{}",
            pods.collect::<String>()
        )
    };
    for class in ["class=ebs", "class=tree", ""] {
        let plan = plan_of(&pods(class));
        assert_eq!(
            (plan.placements[0].pods.len(), plan.launches.len()),
            (5, 1),
            "{class}: {plan}"
        );
    }
    let shared = plan_of(&format!(
        "{node}class ebs driver=ebs.csi.aws.com\npvc data class=ebs\npod db cpu=10m volume=data count=100"
    ));
    assert!(shared.fits_existing(), "{shared}");
    let nfs = (1..=20).map(|n| format!("volume v{n}\npvc d{n} volume=v{n}\npod nfs{n} cpu=10m volume=d{n}\n"));
    let nfs = plan_of(&format!("{node}{}", nfs.collect::<String>()));
    assert!(nfs.fits_existing(), "{nfs}");
}

/// SC15.14.10
#[test]
fn ephemeral_volumes_count_against_the_limit() {
    let plan = plan_of(
        "catalog standard
         pool default
         node n1 cpu=100 memory=100Gi attach:ebs=1
         class ebs driver=ebs default
         pvc one-tmp
         pvc two-tmp class=ebs
         pod one cpu=20m scratch=tmp
         pod two cpu=10m scratch=tmp",
    );
    assert_eq!((plan.placements[0].pods.len(), plan.launches.len()), (1, 1), "{plan}");
}

/// SC15.14.15
#[test]
fn a_volume_decides_where_a_spread_would_have_a_choice() {
    let web = "cpu=100m label:app=web spread=zone:app=web:min3";
    let mut story = Story::new(&standard(&format!("pod web {web} count=3")));
    assert_eq!(story.skew("zone", ("app", "web")), [1, 1, 1]);
    let plan = story.provision(&format!(
        "volume v at=zone:In:test-zone-1
         pvc data volume=v
         pod stored {web} volume=data"
    ));
    assert!(plan.refusals.is_empty(), "{plan}");
    assert_eq!(story.skew("zone", ("app", "web")), [1, 1, 2]);
    assert_eq!(story.spread("zone", ("app", "web"))["test-zone-1"], 2);
}
