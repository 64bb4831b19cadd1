//! The companion in real programs, on every libomp and libiomp5 at hand.

mod activation;
mod common;
mod cores;
mod entries;
mod hooks;
mod offload;
mod opencl;
mod recording;
mod stop_points;
