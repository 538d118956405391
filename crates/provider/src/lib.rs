//! What the controllers ask of a cloud.
