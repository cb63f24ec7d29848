//! The integration tests live in `it`.
#![forbid(unsafe_code)]
