//! What AWS says instead of an answer, and what that means.
//!
//! EC2 tells its errors apart by code alone, and sometimes only by words in the message. All such knowledge is here; the
//! rest of the crate asks in terms of meaning.

use std::fmt;

/// A request that AWS refused, or that did not reach it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub struct AwsError {
    /// Empty when there was no answer at all.
    pub code: String,
    pub message: String,
    /// The HTTP status of the answer, if there was one.
    pub status: Option<u16>,
}

const NO_ANSWER: &str = "AWS did not answer";

impl fmt::Display for AwsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code.as_str(), self.message.as_str()) {
            ("", message) => write!(f, "{NO_ANSWER}: {message}"),
            (code, "") => f.write_str(code),
            (code, message) => write!(f, "{code}: {message}"),
        }
    }
}

const NOT_FOUND: &[&str] = &[
    "InvalidCapacityReservationId.NotFound",
    "InvalidInstanceID.NotFound",
    TEMPLATE_NAME_NOT_FOUND,
    "InvalidLaunchTemplateId.NotFound",
    "QueueDoesNotExist",
    "AWS.SimpleQueueService.NonExistentQueue",
    "NoSuchEntity",
    "ParameterNotFound",
    "InvalidPlacementGroup.Unknown",
];

const TEMPLATE_NAME_NOT_FOUND: &str = "InvalidLaunchTemplateName.NotFoundException";

/// Codes by which a fleet says that it could not get an offering.
const NO_CAPACITY: &[&str] = &[
    "InsufficientInstanceCapacity",
    "MaxSpotInstanceCountExceeded",
    "VcpuLimitExceeded",
    "UnfulfillableCapacity",
    "Unsupported",
    SUBNET_FULL,
    "MaxFleetCountExceeded",
    "ReservationCapacityExceeded",
];

const SUBNET_FULL: &str = "InsufficientFreeAddressesInSubnet";
const SPOT_ROLE_MISSING: &str = "AuthFailure.ServiceLinkedRoleCreationNotPermitted";

impl AwsError {
    pub fn new(code: &str, message: &str) -> Self {
        Self {
            code: code.to_owned(),
            message: message.to_owned(),
            status: None,
        }
    }

    /// The request did not get as far as an answer.
    pub fn no_answer(message: impl fmt::Display) -> Self {
        Self {
            message: message.to_string(),
            ..Self::default()
        }
    }

    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    fn is(&self, code: &str) -> bool {
        self.code == code
    }

    pub fn is_not_found(&self) -> bool {
        NOT_FOUND.contains(&self.code.as_str())
    }

    pub fn is_already_there(&self) -> bool {
        self.is("EntityAlreadyExists") || self.is("InvalidLaunchTemplateName.AlreadyExistsException")
    }

    /// A dry run that would have succeeded.
    pub fn is_passed_dry_run(&self) -> bool {
        self.is("DryRunOperation")
    }

    pub fn is_unauthorized(&self) -> bool {
        self.is("UnauthorizedOperation")
    }

    pub fn is_throttled(&self) -> bool {
        self.is("RequestLimitExceeded")
            || self.code.starts_with("Throttling")
            || self.code.starts_with("RequestThrottled")
    }

    /// AWS or the way to it is in trouble; the request itself may be fine.
    pub fn is_server_fault(&self) -> bool {
        self.code.is_empty() || self.status.is_some_and(|status| status >= 500)
    }

    /// Whoever asks is not known to AWS, or not any more.
    pub fn is_bad_credentials(&self) -> bool {
        BAD_CREDENTIALS.contains(&self.code.as_str())
    }

    /// What whoever runs the controller can do about it, where that is known.
    pub fn remedy(&self) -> Option<&'static str> {
        if self.is_bad_credentials() {
            Some("renew the credentials of the controller")
        } else if self.is_unauthorized() || self.code.starts_with("AccessDenied") {
            Some("allow it in the policy of the controller's role")
        } else if self.is_role_unknown() {
            Some("create the role, or correct spec.role")
        } else if self.code.is_empty() {
            Some("check that the endpoint can be reached from where the controller runs")
        } else {
            None
        }
    }

    /// Worth asking again without anybody changing anything.
    pub fn is_transient(&self) -> bool {
        self.is_throttled() || self.is_server_fault()
    }

    /// A fleet could not get this offering.
    pub fn is_no_capacity(&self) -> bool {
        NO_CAPACITY.contains(&self.code.as_str())
    }

    pub fn is_subnet_full(&self) -> bool {
        self.is(SUBNET_FULL)
    }

    /// Spot requests need a role that EC2 may not create in this account.
    pub fn is_spot_role_missing(&self) -> bool {
        self.is(SPOT_ROLE_MISSING)
    }

    /// A spread placement group holds no more instances in this zone, of whatever type.
    pub fn is_spread_group_full(&self) -> bool {
        self.message
            .contains("limit of instances in this spread placement group")
    }

    /// The template that a fleet names was deleted meanwhile.
    pub fn is_template_gone(&self) -> bool {
        self.is(TEMPLATE_NAME_NOT_FOUND)
    }

    /// The profile does not exist, or EC2 does not see it yet.
    pub fn is_profile_unknown(&self) -> bool {
        self.is("InvalidParameterValue") && self.message.contains("Invalid IAM Instance Profile name")
    }

    pub fn is_user_data_too_long(&self) -> bool {
        self.is("InvalidUserData.Malformed") && self.message.contains(USER_DATA_LIMIT)
    }

    /// The role, and not the profile, is what IAM does not know.
    pub fn is_role_unknown(&self) -> bool {
        self.is("NoSuchEntity") && self.message.to_lowercase().contains("role")
    }
}

/// Each service has its own word for credentials that have run out or are not known.
const BAD_CREDENTIALS: [&str; 8] = [
    "AuthFailure",
    "ExpiredToken",
    "ExpiredTokenException",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "RequestExpired",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
];
const USER_DATA_LIMIT: &str = "User data is limited to";

/// Why a launch failed, in one word for conditions and a sentence for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchFailure {
    pub reason: &'static str,
    pub advice: &'static str,
}

const fn failure(reason: &'static str, advice: &'static str) -> LaunchFailure {
    LaunchFailure { reason, advice }
}

/// The reason behind an error's text. The first that matches counts.
pub fn launch_failure(text: &str) -> LaunchFailure {
    let has = |part: &str| text.contains(part);
    if has(SPOT_ROLE_MISSING) {
        return failure(
            "SpotSLRCreationFailed",
            "the controller may not create the service-linked role that spot instances need; create it once by hand",
        );
    }
    if has("UnauthorizedOperation") || has("AccessDenied") || has("AuthFailure:") {
        return unauthorized(text);
    }
    let rest = [
        (
            has("InvalidParameter") && has("belong to different networks"),
            failure(
                "SecurityGroupSubnetVPCMismatch",
                "the security groups and the subnets of the node class are in different VPCs",
            ),
        ),
        (
            has("iamInstanceProfile.name is invalid"),
            failure(
                "InstanceProfileNameInvalid",
                "the instance profile name is not a valid one",
            ),
        ),
        (
            has("InvalidLaunchTemplateId.NotFound"),
            failure("LaunchTemplateNotFound", "the launch template was deleted meanwhile"),
        ),
        (
            has(USER_DATA_LIMIT),
            failure(
                "UserDataSizeLimitExceeded",
                "the user data is longer than EC2 takes (16 KiB)",
            ),
        ),
        (
            has("InvalidAMIID.Malformed"),
            failure("InvalidAMIID", "an image id of the node class is not a valid one"),
        ),
        (
            has("InvalidAMIID.NotFound"),
            failure("AMINotFound", "an image of the node class does not exist any more"),
        ),
        (
            has("RequestLimitExceeded"),
            failure("RequestLimitExceeded", "EC2 throttles this account's requests"),
        ),
        (
            has("InternalError"),
            failure("InternalError", "EC2 had an internal error"),
        ),
        (
            has("not eligible for Free Tier"),
            failure("FreeTierIneligible", "the account may only launch free tier types"),
        ),
        (
            has("MaxFleetCountExceeded"),
            failure("FleetQuotaExceeded", "the account's quota of fleets is used up"),
        ),
        (
            has("PendingVerification"),
            failure(
                "AccountPendingVerification",
                "AWS is still verifying the account for this region",
            ),
        ),
        (
            has("MaxSpotInstanceCountExceeded"),
            failure("SpotQuotaExceeded", "the account's quota of spot instances is used up"),
        ),
        (
            has("VcpuLimitExceeded"),
            failure(
                "VCPULimitExceeded",
                "the account's quota of vCPUs for this kind of type is used up",
            ),
        ),
        (
            has(SUBNET_FULL),
            failure(SUBNET_FULL, "a subnet of the node class has no free addresses"),
        ),
        (
            BAD_CREDENTIALS.iter().any(|code| has(code)),
            failure(
                "LaunchFailed",
                "the credentials of the controller have run out; renew them",
            ),
        ),
        (
            has(NO_ANSWER),
            failure(
                "LaunchFailed",
                "check that the endpoint can be reached from where the controller runs",
            ),
        ),
    ];
    rest.into_iter()
        .find_map(|(matches, failure)| matches.then_some(failure))
        .unwrap_or(failure("LaunchFailed", "the launch failed"))
}

fn unauthorized(text: &str) -> LaunchFailure {
    let denied = |by: &str| text.contains("with an explicit deny in a") && text.contains(by);
    if denied("permissions boundary") {
        return failure(
            "Unauthorized",
            "a permissions boundary denies it; check the controller role's boundary",
        );
    }
    if denied("service control policy") {
        return failure(
            "Unauthorized",
            "a service control policy denies it; check the policies of the organization",
        );
    }
    if text.contains("Not authorized for images") {
        return failure(
            "AMIAuthorizationFailure",
            "the account may not use the image; check the image's launch permissions",
        );
    }
    failure(
        "Unauthorized",
        "no identity policy allows it; check the policy of the controller's role",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_can_mend_is_said() {
        let table = [
            (AwsError::new("ExpiredToken", ""), Some("renew the credentials")),
            (AwsError::new("AccessDeniedException", ""), Some("allow it")),
            (AwsError::new("UnauthorizedOperation", ""), Some("allow it")),
            (
                AwsError::new("NoSuchEntity", "The role with name x cannot be found."),
                Some("create the role"),
            ),
            (AwsError::no_answer("timed out"), Some("endpoint can be reached")),
            (AwsError::new("RequestLimitExceeded", ""), None),
        ];
        for (error, expected) in table {
            let remedy = error.remedy();
            assert_eq!(remedy.is_some(), expected.is_some(), "{error}");
            assert!(
                remedy.unwrap_or_default().contains(expected.unwrap_or_default()),
                "{error}: {remedy:?}"
            );
        }
        let text = AwsError::no_answer("timed out").to_string();
        assert!(launch_failure(&text).advice.contains("endpoint"));
        assert!(launch_failure("ExpiredToken: x").advice.contains("renew"));
    }

    #[test]
    fn codes_have_their_meaning() {
        let of = |code: &str| AwsError::new(code, "");
        for code in NOT_FOUND {
            assert!(of(code).is_not_found(), "{code}");
        }
        for code in NO_CAPACITY {
            assert!(of(code).is_no_capacity(), "{code}");
        }
        assert!(!of("RequestLimitExceeded").is_no_capacity());
        assert!(of("RequestLimitExceeded").is_throttled() && of("ThrottlingException").is_throttled());
        assert!(of("InternalError").with_status(503).is_server_fault());
        assert!(AwsError::no_answer("timed out").is_transient());
        assert!(!of("UnauthorizedOperation").with_status(403).is_transient());
        assert!(of("DryRunOperation").is_passed_dry_run());
    }

    #[test]
    fn some_errors_are_told_apart_by_their_text() {
        let profile = AwsError::new(
            "InvalidParameterValue",
            "Value (p) ... Invalid IAM Instance Profile name",
        );
        assert!(profile.is_profile_unknown());
        assert!(!AwsError::new("InvalidParameterValue", "other").is_profile_unknown());
        let long = AwsError::new("InvalidUserData.Malformed", "User data is limited to 16384 bytes");
        assert!(long.is_user_data_too_long());
        assert!(!AwsError::new("InvalidUserData.Malformed", "not base64").is_user_data_too_long());
    }

    #[test]
    fn every_text_has_a_reason() {
        let table = [
            (
                "AuthFailure.ServiceLinkedRoleCreationNotPermitted: x",
                "SpotSLRCreationFailed",
            ),
            (
                "UnauthorizedOperation: Not authorized for images: [ami-1]",
                "AMIAuthorizationFailure",
            ),
            ("AccessDenied: no", "Unauthorized"),
            (
                "InvalidParameter: sg-1 and subnet-1 belong to different networks",
                "SecurityGroupSubnetVPCMismatch",
            ),
            (
                "InvalidParameterValue: iamInstanceProfile.name is invalid",
                "InstanceProfileNameInvalid",
            ),
            ("InvalidLaunchTemplateId.NotFound: lt-1", "LaunchTemplateNotFound"),
            (
                "InvalidUserData.Malformed: User data is limited to 16384",
                "UserDataSizeLimitExceeded",
            ),
            ("InvalidAMIID.Malformed: x", "InvalidAMIID"),
            ("InvalidAMIID.NotFound: x", "AMINotFound"),
            ("RequestLimitExceeded: slow down", "RequestLimitExceeded"),
            ("InternalError: x", "InternalError"),
            (
                "InvalidParameterCombination: not eligible for Free Tier",
                "FreeTierIneligible",
            ),
            ("MaxFleetCountExceeded: x", "FleetQuotaExceeded"),
            ("PendingVerification: x", "AccountPendingVerification"),
            ("MaxSpotInstanceCountExceeded: x", "SpotQuotaExceeded"),
            ("VcpuLimitExceeded: x", "VCPULimitExceeded"),
            (
                "InsufficientFreeAddressesInSubnet: x",
                "InsufficientFreeAddressesInSubnet",
            ),
            ("something else", "LaunchFailed"),
        ];
        for (text, reason) in table {
            assert_eq!(launch_failure(text).reason, reason, "{text}");
        }
        let boundary = launch_failure("UnauthorizedOperation: with an explicit deny in a permissions boundary");
        let policy = launch_failure("UnauthorizedOperation: with an explicit deny in a service control policy");
        assert!(boundary.advice.contains("boundary") && policy.advice.contains("service control policy"));
    }
}
