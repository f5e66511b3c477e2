//! An HTTP/1 client that sends exactly the bytes it is given.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::message::{Fields, Request, Response};
use crate::wait::within_deadline;
use crate::wire::{Framing, RawHead, Wire, encode_request};

/// One connection, kept alive between requests. Dropped, it closes.
#[derive(Debug)]
pub struct Http1(Wire<TcpStream>);

impl Http1 {
    pub async fn connect(address: SocketAddr) -> Result<Self> {
        let connected = within_deadline("a connection", TcpStream::connect(address)).await?;
        let stream = connected.with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nodelay(true)?;
        Ok(Self(Wire::new(stream)))
    }

    /// Sends a request and reads its answer, past interim ones.
    pub async fn request(&mut self, request: &Request) -> Result<Response> {
        self.send(&encode_request(request)).await?;
        loop {
            let answer = match request.method.as_str() {
                "HEAD" => self.answer_without_body().await?,
                _ => self.answer().await?,
            };
            if !(100..200).contains(&answer.status) {
                return Ok(answer);
            }
        }
    }

    /// Sends these bytes: a request, half of one, or anything else.
    pub async fn send(&mut self, bytes: &[u8]) -> Result<()> {
        within_deadline("the peer to read", self.0.stream.write_all(bytes))
            .await?
            .context("cannot send")
    }

    /// The next answer, an interim one (1xx) too.
    pub async fn answer(&mut self) -> Result<Response> {
        let (status, head) = self.head().await?;
        let framing = match status {
            100..200 | 204 | 304 => Framing::Length(0),
            _ => head.framing(Framing::UntilClose)?,
        };
        let (body, trailers) = within_deadline("an answer's body", self.0.body(framing)).await??;
        Ok(Response { status, headers: head.fields, body, trailers })
    }

    /// The next answer when it has no body whatever its fields say: to HEAD, and to CONNECT.
    pub async fn answer_without_body(&mut self) -> Result<Response> {
        let (status, head) = self.head().await?;
        Ok(Response {
            status,
            headers: head.fields,
            body: Bytes::new(),
            trailers: Fields::default(),
        })
    }

    /// The next bytes of a tunnel.
    pub async fn receive(&mut self, length: usize) -> Result<Bytes> {
        within_deadline("bytes", self.0.exactly(length)).await?
    }

    /// Returns when the peer has closed the connection.
    pub async fn closed(&mut self) -> Result<()> {
        within_deadline("the peer to close", self.0.closed()).await
    }

    async fn head(&mut self) -> Result<(u16, RawHead)> {
        let head = within_deadline("an answer", self.0.head())
            .await??
            .context("the peer closed without an answer")?;
        let line = std::str::from_utf8(&head.line)?;
        ensure!(line.starts_with("HTTP/1."), "no answer: {line}");
        let status = line.split(' ').nth(1).context("no status")?.parse()?;
        Ok((status, head))
    }
}
