//! The integration tests live in `it`.
