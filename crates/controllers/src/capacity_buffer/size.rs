//! How many pods a buffer keeps room for.

use api::v1beta1::CapacityBufferSpec;
use model::{Quantity, Resources};

/// The larger of the fixed number and the share of the workload, as far as the limits reach; the limits alone where
/// neither is given. Upstream's description of the fields says the smaller; its program takes the larger.
pub fn size(spec: &CapacityBufferSpec, scale: Option<i32>, requests: &Resources) -> i32 {
    let share = spec.percentage.zip(scale).map(|(percent, scale)| share(percent, scale));
    let asked = spec.replicas.into_iter().chain(share).max();
    let bound = bound(spec, requests);
    let size = match (asked, bound) {
        (Some(asked), Some(bound)) => i64::from(asked).min(bound),
        (Some(asked), None) => i64::from(asked),
        (None, bound) => bound.unwrap_or(0),
    };
    i32::try_from(size.max(0)).unwrap_or(i32::MAX)
}

/// Rounded up, so that a positive share of something is something.
fn share(percent: i32, scale: i32) -> i32 {
    let hundredths = i64::from(percent.max(0)) * i64::from(scale.max(0));
    i32::try_from((hundredths + 99) / 100).unwrap_or(i32::MAX)
}

/// How often the pod fits into the limits. Resources that the pod does not ask for do not bind.
fn bound(spec: &CapacityBufferSpec, requests: &Resources) -> Option<i64> {
    let limits = spec.limits.iter().flatten();
    let times = limits.filter_map(|(name, limit)| {
        let asked = requests.get(name).nanos();
        let limit = Quantity::parse(&limit.0).ok()?.nanos();
        (asked > 0).then(|| i64::try_from(limit / asked).unwrap_or(i64::MAX))
    });
    times.min()
}

#[cfg(test)]
mod tests {
    use api::convert;
    use serde_json::{Value, json};

    use super::*;

    /// The buffer, the replicas of its workload, the pod, and how many of it.
    #[track_caller]
    fn check(buffer: Value, scale: Option<i32>, pod: Value, expected: i32) {
        let spec: CapacityBufferSpec = serde_json::from_value(buffer.clone()).expect("a buffer");
        let pod = serde_json::from_value(pod).expect("a pod");
        let shape = convert::pod_shape("default", None, &pod, None)
            .strict()
            .expect("readable");
        assert_eq!(size(&spec, scale, &shape.requests), expected, "{buffer}");
    }

    fn asks(requests: Value) -> Value {
        json!({"containers": [{"name": "a", "resources": {"requests": requests}}]})
    }

    /// LC-B5; SC15.22.1.
    #[test]
    fn a_fixed_size_is_bound_by_limits() {
        let pod = || asks(json!({"cpu": "1"}));
        check(json!({"replicas": 7}), None, pod(), 7);
        check(json!({"replicas": 10, "limits": {"cpu": "3"}}), None, pod(), 3);
        check(json!({"replicas": 3, "limits": {"cpu": "30"}}), None, pod(), 3);
        check(json!({"limits": {"cpu": "5"}}), None, pod(), 5);
        check(json!({}), None, pod(), 0);
    }

    /// LC-B6, LC-B8; SC15.22.1.
    #[test]
    fn a_share_is_rounded_up_and_the_larger_counts() {
        let pod = || asks(json!({"cpu": "1"}));
        check(json!({"percentage": 20}), Some(10), pod(), 2);
        check(json!({"percentage": 20, "replicas": 5}), Some(10), pod(), 5);
        check(json!({"percentage": 80, "replicas": 5}), Some(10), pod(), 8);
        check(json!({"percentage": 80, "limits": {"cpu": "4"}}), Some(10), pod(), 4);
        check(json!({"percentage": 10}), Some(1), pod(), 1);
        check(json!({"percentage": 0}), Some(10), pod(), 0);
        check(json!({"percentage": 50}), Some(0), pod(), 0);
        check(json!({"percentage": 50, "replicas": 2}), Some(0), pod(), 2);
        check(json!({"percentage": 250}), Some(4), pod(), 10);
        check(
            json!({"percentage": 2_000_000_000}),
            Some(2_000_000_000),
            pod(),
            i32::MAX,
        );
    }

    /// LC-B7; SC15.22.1.
    #[test]
    fn limits_count_whole_pods() {
        let limits = |limits: Value| json!({"limits": limits});
        let two = || {
            json!({"containers": [
                {"name": "a", "resources": {"requests": {"cpu": "300m", "memory": "1Gi"}}},
                {"name": "b", "resources": {"requests": {"cpu": "200m"}}},
            ]})
        };
        check(limits(json!({"cpu": "1900m"})), None, two(), 3);
        check(limits(json!({"cpu": "10", "memory": "2500Mi"})), None, two(), 2);
        check(limits(json!({"cpu": "499m"})), None, two(), 0);
        check(
            json!({"replicas": 4, "limits": {"nvidia.com/gpu": "1"}}),
            None,
            two(),
            4,
        );
        check(json!({"replicas": 4, "limits": {"cpu": "1"}}), None, asks(json!({})), 4);

        let mut pod = two();
        pod["initContainers"] = json!([{"name": "init", "resources": {"requests": {"cpu": "2"}}}]);
        check(limits(json!({"cpu": "5"})), None, pod.clone(), 2);
        pod["initContainers"] = json!([
            {"name": "side", "restartPolicy": "Always", "resources": {"requests": {"cpu": "500m"}}},
        ]);
        check(limits(json!({"cpu": "5"})), None, pod, 5);
    }
}
