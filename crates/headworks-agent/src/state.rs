//! The agent's state on disk: what the next life of the process starts from when nobody can be asked.

mod file;
mod keeper;

pub(crate) use keeper::Keeper;
