//! The shape of `kubelet.config.k8s.io/v1beta1` KubeletConfiguration, as of Kubernetes 1.36.

use serde_json::{Map, Value};

use super::error;
use crate::duration;
use crate::field_error::FieldError;

/// What a value may look like.
enum Shape {
    Bool,
    /// A whole number of at most so many bits.
    Int(u32),
    Number,
    Text,
    /// A duration as text.
    Duration,
    /// A duration as text, or nanoseconds.
    DurationOrNanos,
    /// A quantity: text or a number.
    Quantity,
    List(&'static Shape),
    Map(&'static Shape),
    Object(&'static [(&'static str, Shape)]),
}

use Shape::{Bool, Duration, DurationOrNanos, Int, List, Number, Object, Quantity, Text};

/// All unknown fields, at any depth, and all values of the wrong type.
pub fn check(settings: &Map<String, Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (name, value) in settings {
        // Text is an expression here, and judged as one.
        if name == "maxPods" && value.is_string() {
            continue;
        }
        match FIELDS.iter().find(|(field, _)| field == name) {
            Some((_, shape)) => visit(name, value, shape, &mut errors),
            None => errors.push(unknown(name)),
        }
    }
    errors
}

fn unknown(path: &str) -> FieldError {
    error(path, "unknown field")
}

fn visit(path: &str, value: &Value, shape: &Shape, errors: &mut Vec<FieldError>) {
    let fits = match (shape, value) {
        // An explicit null is the same as nothing, as in Go.
        (_, Value::Null) => true,
        (Bool, value) => value.is_boolean(),
        (Int(bits), value) => value.as_i64().is_some_and(|number| fits_in(number, *bits)),
        (Number, value) => value.is_number(),
        (Text, value) => value.is_string(),
        (Duration, value) => is_duration(value),
        (DurationOrNanos, value) => is_duration(value) || value.is_i64(),
        (Quantity, Value::String(text)) => model::Quantity::parse(text).is_ok(),
        (Quantity, value) => value.is_number(),
        (List(item), Value::Array(items)) => {
            for (index, value) in items.iter().enumerate() {
                visit(&format!("{path}[{index}]"), value, item, errors);
            }
            true
        }
        (Shape::Map(item), Value::Object(entries)) => {
            for (key, value) in entries {
                visit(&format!("{path}[{key}]"), value, item, errors);
            }
            true
        }
        (Object(fields), Value::Object(entries)) => {
            for (name, value) in entries {
                let path = format!("{path}.{name}");
                match fields.iter().find(|(field, _)| field == name) {
                    Some((_, shape)) => visit(&path, value, shape, errors),
                    None => errors.push(unknown(&path)),
                }
            }
            true
        }
        (List(_) | Shape::Map(_) | Object(_), _) => false,
    };
    if !fits {
        errors.push(error(path, format_args!("{} is wanted, not {value}", wanted(shape))));
    }
}

fn fits_in(number: i64, bits: u32) -> bool {
    bits == 64 || i32::try_from(number).is_ok()
}

fn is_duration(value: &Value) -> bool {
    value.as_str().is_some_and(|text| duration::parse(text).is_ok())
}

fn wanted(shape: &Shape) -> &'static str {
    match shape {
        Bool => "true or false",
        Int(_) => "a whole number",
        Number => "a number",
        Text => "text",
        Duration | DurationOrNanos => "a duration",
        Quantity => "a quantity",
        List(_) => "a list",
        Shape::Map(_) | Object(_) => "an object",
    }
}

const I32: Shape = Int(32);
const I64: Shape = Int(64);
const TEXTS: Shape = List(&Text);
const TEXT_MAP: Shape = Shape::Map(&Text);

const LOG_OUTPUT: Shape = Object(&[("infoBufferSize", Quantity), ("splitStream", Bool)]);

const LOGGING: Shape = Object(&[
    ("flushFrequency", DurationOrNanos),
    ("format", Text),
    ("options", Object(&[("json", LOG_OUTPUT), ("text", LOG_OUTPUT)])),
    ("verbosity", I64),
    ("vmodule", List(&Object(&[("filePattern", Text), ("verbosity", I64)]))),
]);

const AUTHENTICATION: Shape = Object(&[
    ("anonymous", Object(&[("enabled", Bool)])),
    ("webhook", Object(&[("cacheTTL", Duration), ("enabled", Bool)])),
    ("x509", Object(&[("clientCAFile", Text)])),
]);

const AUTHORIZATION: Shape = Object(&[
    ("mode", Text),
    (
        "webhook",
        Object(&[("cacheAuthorizedTTL", Duration), ("cacheUnauthorizedTTL", Duration)]),
    ),
]);

const TAINT: Shape = Object(&[("effect", Text), ("key", Text), ("timeAdded", Text), ("value", Text)]);

const FIELDS: &[(&str, Shape)] = &[
    ("address", Text),
    ("allowedUnsafeSysctls", TEXTS),
    ("apiVersion", Text),
    ("authentication", AUTHENTICATION),
    ("authorization", AUTHORIZATION),
    ("cgroupDriver", Text),
    ("cgroupRoot", Text),
    ("cgroupsPerQOS", Bool),
    ("clusterDNS", TEXTS),
    ("clusterDomain", Text),
    ("configMapAndSecretChangeDetectionStrategy", Text),
    ("containerLogMaxFiles", I32),
    ("containerLogMaxSize", Text),
    ("containerLogMaxWorkers", I32),
    ("containerLogMonitorInterval", Duration),
    ("containerRuntimeEndpoint", Text),
    ("contentType", Text),
    ("cpuCFSQuota", Bool),
    ("cpuCFSQuotaPeriod", Duration),
    ("cpuManagerPolicy", Text),
    ("cpuManagerPolicyOptions", TEXT_MAP),
    ("cpuManagerReconcilePeriod", Duration),
    ("crashLoopBackOff", Object(&[("maxContainerRestartPeriod", Duration)])),
    ("enableContentionProfiling", Bool),
    ("enableControllerAttachDetach", Bool),
    ("enableDebugFlagsHandler", Bool),
    ("enableDebuggingHandlers", Bool),
    ("enableProfilingHandler", Bool),
    ("enableServer", Bool),
    ("enableSystemLogHandler", Bool),
    ("enableSystemLogQuery", Bool),
    ("enforceNodeAllocatable", TEXTS),
    ("eventBurst", I32),
    ("eventRecordQPS", I32),
    ("evictionHard", TEXT_MAP),
    ("evictionMaxPodGracePeriod", I32),
    ("evictionMinimumReclaim", TEXT_MAP),
    ("evictionPressureTransitionPeriod", Duration),
    ("evictionSoft", TEXT_MAP),
    ("evictionSoftGracePeriod", TEXT_MAP),
    ("failCgroupV1", Bool),
    ("failSwapOn", Bool),
    ("featureGates", Shape::Map(&Bool)),
    ("fileCheckFrequency", Duration),
    ("hairpinMode", Text),
    ("healthzBindAddress", Text),
    ("healthzPort", I32),
    ("httpCheckFrequency", Duration),
    ("imageGCHighThresholdPercent", I32),
    ("imageGCLowThresholdPercent", I32),
    ("imageMaximumGCAge", Duration),
    ("imageMinimumGCAge", Duration),
    ("imagePullCredentialsVerificationPolicy", Text),
    ("imageServiceEndpoint", Text),
    ("iptablesDropBit", I32),
    ("iptablesMasqueradeBit", I32),
    ("kernelMemcgNotification", Bool),
    ("kind", Text),
    ("kubeAPIBurst", I32),
    ("kubeAPIQPS", I32),
    ("kubeReserved", TEXT_MAP),
    ("kubeReservedCgroup", Text),
    ("kubeletCgroups", Text),
    ("localStorageCapacityIsolation", Bool),
    ("logging", LOGGING),
    ("makeIPTablesUtilChains", Bool),
    ("maxOpenFiles", I64),
    ("maxParallelImagePulls", I32),
    ("maxPods", I32),
    ("memoryManagerPolicy", Text),
    ("memoryReservationPolicy", Text),
    ("memorySwap", Object(&[("swapBehavior", Text)])),
    ("memoryThrottlingFactor", Number),
    ("mergeDefaultEvictionSettings", Bool),
    ("nodeLeaseDurationSeconds", I32),
    ("nodeStatusMaxImages", I32),
    ("nodeStatusReportFrequency", Duration),
    ("nodeStatusUpdateFrequency", Duration),
    ("oomScoreAdj", I32),
    ("podCIDR", Text),
    ("podLogsDir", Text),
    ("podPidsLimit", I64),
    ("podsPerCore", I32),
    ("port", I32),
    ("preloadedImagesVerificationAllowlist", TEXTS),
    ("protectKernelDefaults", Bool),
    ("providerID", Text),
    ("qosReserved", TEXT_MAP),
    ("readOnlyPort", I32),
    ("registerNode", Bool),
    ("registerWithTaints", List(&TAINT)),
    ("registryBurst", I32),
    ("registryPullQPS", I32),
    (
        "reservedMemory",
        List(&Object(&[("limits", Shape::Map(&Quantity)), ("numaNode", I32)])),
    ),
    ("reservedSystemCPUs", Text),
    ("resolvConf", Text),
    ("rotateCertificates", Bool),
    ("runOnce", Bool),
    ("runtimeRequestTimeout", Duration),
    ("seccompDefault", Bool),
    ("serializeImagePulls", Bool),
    ("serverTLSBootstrap", Bool),
    ("showHiddenMetricsForVersion", Text),
    ("shutdownGracePeriod", Duration),
    (
        "shutdownGracePeriodByPodPriority",
        List(&Object(&[("priority", I32), ("shutdownGracePeriodSeconds", I64)])),
    ),
    ("shutdownGracePeriodCriticalPods", Duration),
    ("singleProcessOOMKill", Bool),
    ("staticPodPath", Text),
    ("staticPodURL", Text),
    ("staticPodURLHeader", Shape::Map(&TEXTS)),
    ("streamingConnectionIdleTimeout", Duration),
    ("syncFrequency", Duration),
    ("systemCgroups", Text),
    ("systemReserved", TEXT_MAP),
    ("systemReservedCgroup", Text),
    ("tlsCertFile", Text),
    ("tlsCipherSuites", TEXTS),
    ("tlsCurvePreferences", List(&I32)),
    ("tlsMinVersion", Text),
    ("tlsPrivateKeyFile", Text),
    ("topologyManagerPolicy", Text),
    ("topologyManagerPolicyOptions", TEXT_MAP),
    ("topologyManagerScope", Text),
    (
        "tracing",
        Object(&[("endpoint", Text), ("samplingRatePerMillion", I32)]),
    ),
    ("userNamespaces", Object(&[("idsPerPod", I64)])),
    ("volumePluginDir", Text),
    ("volumeStatsAggPeriod", Duration),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_has_every_field_once() {
        assert!(FIELDS.is_sorted_by(|(a, _), (b, _)| a < b));
    }
}
