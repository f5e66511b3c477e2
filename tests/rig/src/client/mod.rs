//! Clients: HTTP/1 by the byte, HTTP/2 by the frame, and many requests at once.

mod http1;
mod http2;
mod load;

pub use http1::Http1;
pub use http2::Http2;
pub use load::{LoadReport, load};
