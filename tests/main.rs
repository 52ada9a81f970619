//! One integration binary, one folder a subject.
