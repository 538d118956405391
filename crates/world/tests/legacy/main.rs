//! Clusters from the time of Provisioners, in a simulated world with the production controllers.

mod adoption;
mod binding;
mod objects;
mod provisioners;
