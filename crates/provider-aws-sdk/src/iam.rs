//! IAM: instance profiles, and the roles in them.

use async_trait::async_trait;
use aws_sdk_iam::{
    Client,
    types::{InstanceProfile, Tag},
};
use provider_aws::{
    error::AwsError,
    ports::{Iam, ProfileInfo, Tags},
};

use crate::{
    refusal::{incomplete, refused},
    words::{all, listed},
};

pub(crate) struct SdkIam(pub Client);

#[async_trait]
impl Iam for SdkIam {
    async fn profile(&self, name: &str) -> Result<ProfileInfo, AwsError> {
        let request = self.0.get_instance_profile().instance_profile_name(name);
        let answer = request.send().await.map_err(refused)?;
        answer
            .instance_profile
            .map(profile)
            .ok_or_else(|| incomplete("instance profile"))
    }

    async fn create_profile(&self, name: &str, path: &str, tags: &Tags) -> Result<(), AwsError> {
        let tag = |(key, value): (&String, &String)| {
            let tag = Tag::builder().key(key).value(value).build();
            tag.expect("key and value are given")
        };
        let request = self
            .0
            .create_instance_profile()
            .instance_profile_name(name)
            .set_path(Some(path.to_owned()).filter(|path| !path.is_empty()))
            .set_tags(listed(tags.iter().map(tag).collect()));
        request.send().await.map(drop).map_err(refused)
    }

    async fn add_role(&self, profile: &str, role: &str) -> Result<(), AwsError> {
        let request = self.0.add_role_to_instance_profile();
        let request = request.instance_profile_name(profile).role_name(role);
        request.send().await.map(drop).map_err(refused)
    }

    async fn remove_role(&self, profile: &str, role: &str) -> Result<(), AwsError> {
        let request = self.0.remove_role_from_instance_profile();
        let request = request.instance_profile_name(profile).role_name(role);
        request.send().await.map(drop).map_err(refused)
    }

    async fn delete_profile(&self, name: &str) -> Result<(), AwsError> {
        let request = self.0.delete_instance_profile().instance_profile_name(name);
        request.send().await.map(drop).map_err(refused)
    }

    async fn role(&self, name: &str) -> Result<(), AwsError> {
        let request = self.0.get_role().role_name(name);
        request.send().await.map(drop).map_err(refused)
    }

    async fn profiles(&self, path_prefix: &str) -> Result<Vec<ProfileInfo>, AwsError> {
        let request = self.0.list_instance_profiles().path_prefix(path_prefix);
        all(request.into_paginator().items().send(), profile).await
    }
}

fn profile(profile: InstanceProfile) -> ProfileInfo {
    ProfileInfo {
        name: profile.instance_profile_name,
        roles: profile.roles.into_iter().map(|role| role.role_name).collect(),
    }
}
