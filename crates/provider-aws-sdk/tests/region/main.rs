//! The production controllers, the SDK and an AWS region in one process, on virtual time: what users see when things go
//! wrong, and what is left when the program dies on the way.

mod crashes;
mod permissions;
mod stage;
mod trouble;
mod wave;
