//! An HTTP/2 client with a say over each frame.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use bytes::{Bytes, BytesMut};
use h2::client::{SendRequest, handshake};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::message::{Body, Fields, Request, Response};
use crate::wait::within_deadline;

/// One connection, with prior knowledge. Dropped, it closes.
#[derive(Debug)]
pub struct Http2 {
    streams: SendRequest<Bytes>,
    connection: JoinHandle<Result<(), h2::Error>>,
}

impl Http2 {
    pub async fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address)
            .await
            .with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nodelay(true)?;
        let (streams, connection) = handshake(stream).await?;
        Ok(Self { streams, connection: tokio::spawn(connection) })
    }

    /// Sends a request and reads its answer.
    ///
    /// A [`Body::Pieces`] becomes one DATA frame a piece, an empty piece an empty frame; the
    /// stream ends with the trailers, or without any with the last piece.
    pub async fn request(&mut self, request: &Request) -> Result<Response> {
        within_deadline("an HTTP/2 answer", self.exchange(request)).await?
    }

    async fn exchange(&mut self, request: &Request) -> Result<Response> {
        let (answer, mut sending) = {
            let mut ready = self.streams.clone().ready().await?;
            ready.send_request(head(request)?, matches!(request.body, Body::Absent))?
        };
        match &request.body {
            Body::Absent => {}
            Body::Sized(body) => sending.send_data(body.clone(), true)?,
            Body::Pieces(pieces, trailers) => {
                let last_is_end = trailers.0.is_empty();
                for (index, piece) in pieces.iter().enumerate() {
                    sending.send_data(piece.clone(), last_is_end && index + 1 == pieces.len())?;
                }
                if !last_is_end {
                    sending.send_trailers(trailers.to_map()?)?;
                }
            }
        }
        let (head, mut receiving) = answer.await?.into_parts();
        let mut body = BytesMut::new();
        while let Some(piece) = receiving.data().await.transpose()? {
            receiving.flow_control().release_capacity(piece.len())?;
            body.extend_from_slice(&piece);
        }
        let trailers = receiving.trailers().await?.unwrap_or_default();
        Ok(Response {
            status: head.status.as_u16(),
            headers: Fields::from_map(&head.headers),
            body: body.freeze(),
            trailers: Fields::from_map(&trailers),
        })
    }
}

impl Drop for Http2 {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

fn head(request: &Request) -> Result<http::Request<()>> {
    let uri = http::Uri::builder()
        .scheme("http")
        .authority(request.authority.as_str())
        .path_and_query(request.target.as_str())
        .build()?;
    let mut head = http::Request::builder().method(request.method.as_str()).uri(uri).body(())?;
    *head.headers_mut() = request.headers.to_map()?;
    if let Body::Sized(body) = &request.body {
        head.headers_mut().insert(http::header::CONTENT_LENGTH, body.len().into());
    }
    Ok(head)
}
