//! One integration binary, one folder a subject. Nothing here needs a network, a GPU or a home folder.

mod golden;
mod training;
