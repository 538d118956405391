//! AWS in memory: scripted answers, counted calls, failures to order.

mod ec2;
mod identity;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use clock::{Clock, VirtualClock};
use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};

use crate::{
    error::AwsError,
    ports::{
        AccessEntryInfo, Aws, ClusterInfo, DryLaunch, FleetAnswer, FleetError, FleetInstances, FleetOverride,
        FleetRequest, ImageInfo, InstanceInfo, InstanceStatusInfo, InstanceTypeInfo, Message, PlacementGroupInfo,
        ReservationInfo, SecurityGroupInfo, Shift, SpotPrice, SubnetInfo, Tags, Template, TemplateData, TypeOffering,
    },
};

/// A region that belongs to one test.
#[derive(Clone)]
pub struct FakeAws {
    state: Arc<Mutex<State>>,
    clock: Arc<VirtualClock>,
}

#[derive(Default)]
pub(super) struct State {
    calls: BTreeMap<&'static str, usize>,
    failures: BTreeMap<&'static str, VecDeque<AwsError>>,
    pub parameters: BTreeMap<String, String>,
    pub images: Vec<(ImageInfo, Tags)>,
    pub subnets: Vec<(SubnetInfo, Tags)>,
    pub groups: Vec<(SecurityGroupInfo, Tags)>,
    pub reservations: Vec<(ReservationInfo, Tags)>,
    pub placement_groups: Vec<PlacementGroupInfo>,
    pub profiles: BTreeMap<String, FakeProfile>,
    pub shifts: Vec<Shift>,
    pub cluster: ClusterInfo,
    /// By the ARN of the principal.
    pub access_entries: BTreeMap<String, AccessEntryInfo>,
    pub types: Vec<InstanceTypeInfo>,
    pub offerings: Vec<TypeOffering>,
    pub spot_prices: Vec<SpotPrice>,
    pub products: Vec<Vec<String>>,
    pub templates: BTreeMap<String, (Template, Tags, TemplateData)>,
    pub instances: BTreeMap<String, InstanceInfo>,
    pub statuses: Vec<InstanceStatusInfo>,
    pub fleets: Vec<FleetRequest>,
    pub dry_launches: Vec<DryLaunch>,
    pub fleet_answers: VecDeque<FleetAnswer>,
    /// What fleets with these tokens got; asking again gets the same.
    pub fleets_by_token: BTreeMap<String, FleetAnswer>,
    /// Types that cannot be had: type, zone, target capacity type.
    pub exhausted: BTreeSet<(String, String, String)>,
    pub messages: Vec<Message>,
    pub terminations: Vec<Vec<String>>,
    pub serial: u64,
}

impl State {
    /// The security groups that the first template of a fleet gives its instances.
    pub fn groups_of(&self, request: &FleetRequest) -> Vec<String> {
        let name = request.groups.first().map(|group| &group.template_name);
        let data = name.and_then(|name| self.templates.get(name)).map(|(.., data)| data);
        let interface = data.and_then(|data| data.interfaces.first());
        interface.map(|interface| interface.groups.clone()).unwrap_or_default()
    }

    /// What EC2 itself tags the instances of a fleet with: the first of its templates, which is the only one here.
    pub fn template_tag(&self, request: &FleetRequest) -> Option<(String, String)> {
        let name = &request.groups.first()?.template_name;
        let (template, ..) = self.templates.get(name)?;
        Some((crate::tags::LAUNCH_TEMPLATE_ID.to_owned(), template.id.clone()))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FakeProfile {
    pub path: String,
    pub tags: Tags,
    pub role: Option<String>,
}

fn tags_of(pairs: &[(&str, &str)]) -> Tags {
    let pair = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    pairs.iter().map(pair).collect()
}

impl Default for FakeAws {
    fn default() -> Self {
        Self::new()
    }
}

impl FakeAws {
    /// Inside a runtime with paused time, which the fake's clock follows.
    pub fn new() -> Self {
        Self {
            state: Arc::default(),
            clock: Arc::new(VirtualClock::starting_at(Timestamp::UNIX_EPOCH)),
        }
    }

    pub fn ports(&self) -> Aws {
        let all = Arc::new(self.clone());
        Aws {
            ec2: all.clone(),
            iam: all.clone(),
            ssm: all.clone(),
            eks: all.clone(),
            prices: all.clone(),
            queue: all.clone(),
            zonal_shift: all,
        }
    }

    pub fn clock(&self) -> Arc<dyn Clock> {
        self.clock.clone()
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Counts a call, and makes it fail if that was ordered.
    pub(super) fn called(&self, action: &'static str) -> Result<MutexGuard<'_, State>, AwsError> {
        let mut state = self.state();
        *state.calls.entry(action).or_default() += 1;
        match state.failures.get_mut(action).and_then(VecDeque::pop_front) {
            Some(error) => Err(error),
            None => Ok(state),
        }
    }

    /// The next call of this action fails so; ordered several times, several calls do.
    pub fn fail(&self, action: &'static str, error: AwsError) {
        self.state().failures.entry(action).or_default().push_back(error);
    }

    /// What was ordered to fail and has not yet, does not.
    pub fn forget_failures(&self) {
        self.state().failures.clear();
    }

    pub fn calls(&self, action: &str) -> usize {
        self.state().calls.get(action).copied().unwrap_or(0)
    }

    pub fn all_calls(&self) -> usize {
        self.state().calls.values().sum()
    }

    pub fn set_parameter(&self, name: &str, value: &str) {
        self.state().parameters.insert(name.to_owned(), value.to_owned());
    }

    pub fn remove_parameter(&self, name: &str) {
        self.state().parameters.remove(name);
    }

    pub fn add_image(&self, image: ImageInfo, tags: &[(&str, &str)]) {
        self.state().images.push((image, tags_of(tags)));
    }

    pub fn change_image(&self, id: &str, change: impl FnOnce(&mut ImageInfo)) {
        let mut state = self.state();
        let image = state.images.iter_mut().find(|(image, _)| image.id == id);
        change(&mut image.expect("the image exists").0);
    }

    pub fn add_subnet(&self, id: &str, zone: &str, addresses: i64, tags: &[(&str, &str)]) {
        let subnet = SubnetInfo {
            id: id.to_owned(),
            zone: zone.to_owned(),
            zone_id: format!("id-{zone}"),
            available_addresses: addresses,
        };
        self.state().subnets.push((subnet, tags_of(tags)));
    }

    pub fn add_group(&self, id: &str, name: &str, tags: &[(&str, &str)]) {
        let group = SecurityGroupInfo {
            id: id.to_owned(),
            name: name.to_owned(),
        };
        self.state().groups.push((group, tags_of(tags)));
    }

    pub fn add_reservation(&self, reservation: ReservationInfo, tags: &[(&str, &str)]) {
        self.state().reservations.push((reservation, tags_of(tags)));
    }

    pub fn add_placement_group(&self, group: PlacementGroupInfo) {
        self.state().placement_groups.push(group);
    }

    pub fn set_shifts(&self, shifts: Vec<Shift>) {
        self.state().shifts = shifts;
    }

    pub fn profile(&self, name: &str) -> Option<FakeProfile> {
        self.state().profiles.get(name).cloned()
    }

    pub fn profile_names(&self) -> Vec<String> {
        self.state().profiles.keys().cloned().collect()
    }

    pub fn change_profile(&self, name: &str, change: impl FnOnce(&mut FakeProfile)) {
        change(self.state().profiles.get_mut(name).expect("the profile exists"));
    }

    /// The next fleet is answered so, whatever it asks for.
    pub fn answer_fleet(&self, answer: FleetAnswer) {
        self.state().fleet_answers.push_back(answer);
    }

    /// EC2 runs out of a type in a zone, bought as `spot` or `on-demand`.
    pub fn exhaust(&self, instance_type: &str, zone: &str, target: &str) {
        let offering = [instance_type, zone, target].map(str::to_owned).into();
        self.state().exhausted.insert(offering);
    }

    /// What is shutting down has shut down, and what was pending runs.
    pub fn let_time_pass(&self) {
        let mut state = self.state();
        state.instances.retain(|_, instance| instance.state != "shutting-down");
        for instance in state.instances.values_mut() {
            instance.state = "running".to_owned();
        }
    }

    pub fn instance(&self, id: &str) -> Option<InstanceInfo> {
        self.state().instances.get(id).cloned()
    }

    pub fn change_instance(&self, id: &str, change: impl FnOnce(&mut InstanceInfo)) {
        change(self.state().instances.get_mut(id).expect("the instance exists"));
    }

    pub fn announce(&self, receipt: &str, body: &str) {
        let message = Message {
            body: body.to_owned(),
            receipt: receipt.to_owned(),
            sent: Some(self.now()),
        };
        self.state().messages.push(message);
    }

    pub fn waiting_messages(&self) -> usize {
        self.state().messages.len()
    }

    pub fn set_cluster(&self, cluster: ClusterInfo) {
        self.state().cluster = cluster;
    }

    pub fn add_access_entry(&self, principal: &str, entry: AccessEntryInfo) {
        self.state().access_entries.insert(principal.to_owned(), entry);
    }

    pub fn set_statuses(&self, statuses: Vec<InstanceStatusInfo>) {
        self.state().statuses = statuses;
    }

    pub fn dry_launches(&self) -> Vec<DryLaunch> {
        self.state().dry_launches.clone()
    }

    pub fn templates(&self) -> Vec<TemplateData> {
        self.state().templates.values().map(|(.., data)| data.clone()).collect()
    }

    pub fn add_profile(&self, name: &str, profile: FakeProfile) {
        self.state().profiles.insert(name.to_owned(), profile);
    }

    pub fn add_instance(&self, instance: InstanceInfo) {
        self.state().instances.insert(instance.id.clone(), instance);
    }

    pub fn remove_instance(&self, id: &str) {
        self.state().instances.remove(id);
    }

    pub fn terminations(&self) -> Vec<Vec<String>> {
        self.state().terminations.clone()
    }

    pub fn template_names(&self) -> Vec<String> {
        self.state().templates.keys().cloned().collect()
    }

    /// Answers to the next listings of the price list, in turn.
    pub fn set_products(&self, listings: Vec<Vec<String>>) {
        self.state().products = listings;
    }

    pub fn set_types(&self, types: Vec<InstanceTypeInfo>, offerings: Vec<TypeOffering>) {
        let mut state = self.state();
        state.types = types;
        state.offerings = offerings;
    }

    pub fn set_spot_prices(&self, prices: Vec<SpotPrice>) {
        self.state().spot_prices = prices;
    }

    pub fn fleets(&self) -> Vec<FleetRequest> {
        self.state().fleets.clone()
    }
}

/// The cheapest override that can be had, launched as often as asked for; what was cheaper and could not be had is an
/// error beside it.
pub(super) fn launched_cheapest(
    request: &FleetRequest,
    exhausted: &BTreeSet<(String, String, String)>,
    serial: &mut u64,
) -> FleetAnswer {
    let target = request.market.target();
    let mut overrides: Vec<&FleetOverride> = request.groups.iter().flat_map(|group| &group.overrides).collect();
    overrides.sort_by(|a, b| a.priority.unwrap_or(0.0).total_cmp(&b.priority.unwrap_or(0.0)));
    let is_short = |entry: &&&FleetOverride| {
        let zone = entry.zone.clone().unwrap_or_default();
        exhausted.contains(&(entry.instance_type.clone(), zone, target.to_owned()))
    };
    let errors = overrides.iter().filter(is_short).map(|entry| FleetError {
        error: AwsError::new("InsufficientInstanceCapacity", "there is none left"),
        failed: Some((*entry).clone()),
    });
    let errors: Vec<FleetError> = errors.collect();
    let Some(chosen) = overrides.iter().find(|entry| !is_short(entry)).copied().cloned() else {
        let instances = Vec::new();
        return FleetAnswer { instances, errors };
    };
    let mut id = || {
        *serial += 1;
        format!("i-{serial:04}")
    };
    FleetAnswer {
        instances: vec![FleetInstances {
            ids: (0..request.count).map(|_| id()).collect(),
            instance_type: chosen.instance_type.clone(),
            lifecycle: if target == "spot" {
                "spot".to_owned()
            } else {
                String::new()
            },
            chosen,
        }],
        errors,
    }
}
