//! Prices.

use async_trait::async_trait;

use super::Filter;
use crate::error::AwsError;

/// Which products of the price list to return: every filter matches exactly.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PriceQuery {
    pub service: &'static str,
    pub filters: Vec<Filter>,
}

#[async_trait]
pub trait PriceList: Send + Sync + 'static {
    /// Each product as the JSON text that the price list returns, 100 to a page.
    async fn products(&self, query: &PriceQuery) -> Result<Vec<String>, AwsError>;
}

#[derive(Clone, Debug, PartialEq)]
pub struct SpotPrice {
    pub instance_type: String,
    pub zone: String,
    pub price: f64,
}
