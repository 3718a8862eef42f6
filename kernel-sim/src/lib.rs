//! A simulated kernel around the vDSO.
//!
//! | module | answers |
//! |---|---|
//! | [`map`] | how do a page and an image come into this process, as a kernel would map them |
//! | [`functions`] | how are the functions of a mapped image called, ours or the host's |

pub mod functions;
pub mod map;
