//! Small things that many calls share: filters, tags, times, numbers.

use aws_sdk_ec2::{error::SdkError, types};
use aws_smithy_async::future::pagination_stream::PaginationStream;
use aws_smithy_types::{DateTime, error::metadata::ProvideErrorMetadata};
use jiff::Timestamp;
use provider_aws::{
    error::AwsError,
    ports::{Filter, Tags},
};

use crate::refusal::refused;

/// All items of a paged listing, each read as it comes.
pub(crate) async fn all<T, U, E>(
    mut pages: PaginationStream<Result<T, SdkError<E>>>,
    mut read: impl FnMut(T) -> U,
) -> Result<Vec<U>, AwsError>
where
    E: std::error::Error + ProvideErrorMetadata + Send + Sync + 'static,
{
    let mut items = Vec::new();
    while let Some(item) = pages.try_next().await.map_err(refused)? {
        items.push(read(item));
    }
    Ok(items)
}

pub(crate) fn filter(filter: &Filter) -> types::Filter {
    types::Filter::builder()
        .name(&filter.name)
        .set_values(Some(filter.values.clone()))
        .build()
}

/// Not mentioned at all when there are none.
pub(crate) fn filters<'a>(wanted: impl IntoIterator<Item = &'a Filter>) -> Option<Vec<types::Filter>> {
    listed(wanted.into_iter().map(filter).collect())
}

pub(crate) fn listed<T>(list: Vec<T>) -> Option<Vec<T>> {
    Some(list).filter(|list| !list.is_empty())
}

pub(crate) fn tags(tags: &Tags) -> Option<Vec<types::Tag>> {
    let tag = |(key, value): (&String, &String)| types::Tag::builder().key(key).value(value).build();
    listed(tags.iter().map(tag).collect())
}

/// The same tags for several kinds of resource.
pub(crate) fn tagged(kinds: &[types::ResourceType], wanted: &Tags) -> Option<Vec<types::TagSpecification>> {
    let one = |kind: &types::ResourceType| {
        types::TagSpecification::builder()
            .resource_type(kind.clone())
            .set_tags(tags(wanted))
            .build()
    };
    listed(kinds.iter().map(one).collect())
}

pub(crate) fn read_tags(tags: Option<Vec<types::Tag>>) -> Tags {
    let pair = |tag: types::Tag| Some((tag.key?, tag.value.unwrap_or_default()));
    tags.into_iter().flatten().filter_map(pair).collect()
}

/// Times outside of what a timestamp can hold are no times.
pub(crate) fn timestamp(time: DateTime) -> Option<Timestamp> {
    Timestamp::new(time.secs(), i32::try_from(time.subsec_nanos()).ok()?).ok()
}

pub(crate) fn date_time(time: Timestamp) -> DateTime {
    DateTime::from_millis(time.as_millisecond())
}

/// AWS counts in 32 bits. What does not fit is refused by AWS as too much.
pub(crate) fn narrow(number: i64) -> i32 {
    i32::try_from(number).unwrap_or(if number < 0 { i32::MIN } else { i32::MAX })
}

/// A count, which AWS never reports below zero.
pub(crate) fn count(number: Option<i32>) -> u32 {
    number.and_then(|number| u32::try_from(number).ok()).unwrap_or(0)
}

/// EC2's own word for an enumerated value, known to the SDK or not; empty where EC2 says nothing.
pub(crate) fn word<T: AsRef<str>>(value: Option<&T>) -> String {
    value.map(|value| value.as_ref().to_owned()).unwrap_or_default()
}

pub(crate) fn words<T: AsRef<str>>(values: Option<&[T]>) -> Vec<String> {
    values
        .unwrap_or_default()
        .iter()
        .map(|value| value.as_ref().to_owned())
        .collect()
}
