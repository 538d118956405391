//! The custom resources and their conversion into model types.
