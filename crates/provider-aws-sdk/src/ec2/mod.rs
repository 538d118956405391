//! EC2: each call of the port, with the fields and page sizes that upstream sends.
//!
//! [`fleet`] and [`template`] write the large requests, the other modules read the large answers.

mod fleet;
mod instance;
mod instance_type;
mod place;
mod template;

use async_trait::async_trait;
use aws_sdk_ec2::{
    Client,
    config::retry::RetryConfig,
    types::{LocationType, ResourceType},
};
use jiff::Timestamp;
use provider_aws::{
    error::AwsError,
    ports::{
        DryLaunch, Ec2, Filter, FleetAnswer, FleetRequest, ImageInfo, ImageQuery, InstanceInfo, InstanceQuery,
        InstanceStatusInfo, InstanceTypeInfo, PlacementGroupInfo, PlacementGroupQuery, ReservationInfo,
        ReservationQuery, SecurityGroupInfo, SpotPrice, StateChange, StatusQuery, SubnetInfo, Tags, Template,
        TemplateData, TemplateKey, TemplateQuery, TypeOffering,
    },
};

use crate::{
    refusal::{incomplete, refused},
    words::{all, date_time, filters, listed, tagged, tags},
};

/// What spot capacity runs, inside a VPC and without.
const LINUX: [&str; 2] = ["Linux/UNIX", "Linux/UNIX (Amazon VPC)"];

pub(crate) struct SdkEc2 {
    client: Client,
    /// Makes each call once. A dry run that fails says something about the node class; asking again says nothing more.
    once: Client,
}

impl SdkEc2 {
    pub(crate) fn new(client: Client) -> Self {
        let once = client
            .config()
            .to_builder()
            .retry_config(RetryConfig::disabled())
            .build();
        Self {
            client,
            once: Client::from_conf(once),
        }
    }
}

#[async_trait]
impl Ec2 for SdkEc2 {
    async fn check_access(&self) -> Result<(), AwsError> {
        let answer = self.client.describe_instance_types().dry_run(true).send().await;
        match answer.map_err(refused) {
            Ok(_) => Ok(()),
            Err(refusal) if refusal.is_passed_dry_run() => Ok(()),
            Err(refusal) => Err(refusal),
        }
    }

    async fn instance_types(&self) -> Result<Vec<InstanceTypeInfo>, AwsError> {
        let wanted = [
            Filter::new("supported-virtualization-type", ["hvm"]),
            Filter::new("processor-info.supported-architecture", ["x86_64", "arm64"]),
        ];
        let request = self.client.describe_instance_types().set_filters(filters(&wanted));
        let pages = request.into_paginator().page_size(100).items().send();
        all(pages, instance_type::read).await
    }

    async fn type_offerings(&self) -> Result<Vec<TypeOffering>, AwsError> {
        let request = self.client.describe_instance_type_offerings();
        let request = request.location_type(LocationType::AvailabilityZone);
        let pages = request.into_paginator().page_size(1000).items().send();
        all(pages, place::offering).await
    }

    async fn subnets(&self, wanted: &[Filter]) -> Result<Vec<SubnetInfo>, AwsError> {
        let request = self.client.describe_subnets().set_filters(filters(wanted));
        all(request.into_paginator().page_size(500).items().send(), place::subnet).await
    }

    async fn security_groups(&self, wanted: &[Filter]) -> Result<Vec<SecurityGroupInfo>, AwsError> {
        let request = self.client.describe_security_groups().set_filters(filters(wanted));
        let pages = request.into_paginator().page_size(500).items().send();
        all(pages, place::security_group).await
    }

    async fn images(&self, query: &ImageQuery) -> Result<Vec<ImageInfo>, AwsError> {
        let request = self
            .client
            .describe_images()
            .set_filters(filters(&query.filters))
            .set_owners(listed(query.owners.clone()))
            .include_deprecated(true);
        all(request.into_paginator().page_size(1000).items().send(), place::image).await
    }

    async fn capacity_reservations(&self, query: &ReservationQuery) -> Result<Vec<ReservationInfo>, AwsError> {
        let active = Filter::new("state", ["active"]);
        let request = self.client.describe_capacity_reservations();
        let pages = match query {
            ReservationQuery::Id(id) => request
                .capacity_reservation_ids(id)
                .set_filters(filters([&active]))
                .into_paginator(),
            ReservationQuery::Matching(wanted) => request
                .set_filters(filters([&active].into_iter().chain(wanted)))
                .into_paginator()
                .page_size(1000),
        };
        all(pages.items().send(), place::reservation).await
    }

    async fn placement_groups(&self, query: &PlacementGroupQuery) -> Result<Vec<PlacementGroupInfo>, AwsError> {
        let available = Filter::new("state", ["available"]);
        let request = self
            .client
            .describe_placement_groups()
            .set_filters(filters([&available]));
        let request = match query {
            PlacementGroupQuery::Id(id) => request.group_ids(id),
            PlacementGroupQuery::Name(name) => request.group_names(name),
        };
        let answer = request.send().await.map_err(refused)?;
        let groups = answer.placement_groups.into_iter().flatten();
        Ok(groups.map(place::placement_group).collect())
    }

    async fn spot_prices(&self, now: Timestamp) -> Result<Vec<SpotPrice>, AwsError> {
        let request = self
            .client
            .describe_spot_price_history()
            .set_product_descriptions(Some(LINUX.map(str::to_owned).to_vec()))
            .start_time(date_time(now));
        let pages = request.into_paginator().page_size(2000).items().send();
        let prices = all(pages, place::spot_price).await?;
        Ok(prices.into_iter().flatten().collect())
    }

    async fn launch_templates(&self, query: &TemplateQuery) -> Result<Vec<Template>, AwsError> {
        let request = self.client.describe_launch_templates();
        let pages = match query {
            TemplateQuery::Name(name) => request.launch_template_names(name).into_paginator(),
            TemplateQuery::Matching(wanted) => request.set_filters(filters(wanted)).into_paginator().page_size(200),
        };
        all(pages.items().send(), template::read).await
    }

    async fn create_launch_template(
        &self,
        name: &str,
        wanted: &Tags,
        data: &TemplateData,
    ) -> Result<Template, AwsError> {
        let request = self
            .client
            .create_launch_template()
            .launch_template_name(name)
            .launch_template_data(template::data(data))
            .set_tag_specifications(tagged(&[ResourceType::LaunchTemplate], wanted));
        let answer = request.send().await.map_err(refused)?;
        let template = answer.launch_template.map(template::read);
        template.ok_or_else(|| incomplete("launch template"))
    }

    async fn delete_launch_template(&self, key: &TemplateKey) -> Result<(), AwsError> {
        let request = self.client.delete_launch_template();
        let request = match key {
            TemplateKey::Id(id) => request.launch_template_id(id),
            TemplateKey::Name(name) => request.launch_template_name(name),
        };
        request.send().await.map(drop).map_err(refused)
    }

    async fn create_fleet(&self, request: &FleetRequest) -> Result<FleetAnswer, AwsError> {
        let client = if request.dry_run { &self.once } else { &self.client };
        let answer = fleet::request(client.create_fleet(), request).send().await;
        answer.map(fleet::answer).map_err(refused)
    }

    async fn try_launch(&self, request: &DryLaunch) -> Result<(), AwsError> {
        let answer = fleet::dry_launch(self.once.run_instances(), request).send().await;
        answer.map(drop).map_err(refused)
    }

    async fn instances(&self, query: &InstanceQuery) -> Result<Vec<InstanceInfo>, AwsError> {
        let request = self
            .client
            .describe_instances()
            .set_instance_ids(listed(query.ids.clone()))
            .set_filters(filters(&query.filters));
        let pages = request.into_paginator();
        // EC2 refuses a page size beside ids.
        let pages = if query.ids.is_empty() {
            pages.page_size(1000)
        } else {
            pages
        };
        let reservations = all(pages.items().send(), |reservation| {
            let instances = reservation.instances.into_iter().flatten();
            instances.map(instance::read).collect::<Vec<_>>()
        });
        Ok(reservations.await?.concat())
    }

    async fn instance_status(&self, query: &StatusQuery) -> Result<Vec<InstanceStatusInfo>, AwsError> {
        let request = self.client.describe_instance_status();
        let request = request.set_filters(filters(&query.filters));
        all(request.into_paginator().items().send(), instance::status).await
    }

    async fn terminate_instances(&self, ids: &[String]) -> Result<Vec<StateChange>, AwsError> {
        let request = self.client.terminate_instances().set_instance_ids(Some(ids.to_vec()));
        let answer = request.send().await.map_err(refused)?;
        let changes = answer.terminating_instances.into_iter().flatten();
        Ok(changes.map(instance::state_change).collect())
    }

    async fn create_tags(&self, instance: &str, wanted: &Tags) -> Result<(), AwsError> {
        let request = self.client.create_tags().resources(instance).set_tags(tags(wanted));
        request.send().await.map(drop).map_err(refused)
    }
}
