//! How HTTP/1 puts messages on a socket, for both sides of it: names, order and bytes are kept
//! as they are, which no HTTP library with a header map does.

use anyhow::{Context, Result, bail, ensure};
use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::message::{Body, Fields, Request, Response};

/// More fields than any test sends.
const MAX_FIELDS: usize = 128;

/// How the end of a body is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    Length(u64),
    Chunked,
    UntilClose,
}

/// The first line of a message and its header fields.
#[derive(Debug)]
pub struct RawHead {
    /// `GET /x HTTP/1.1`, or `HTTP/1.1 200 OK`.
    pub line: Vec<u8>,
    pub fields: Fields,
}

impl RawHead {
    /// The body's framing as the fields give it; `otherwise` when they do not.
    pub fn framing(&self, otherwise: Framing) -> Result<Framing> {
        if self
            .fields
            .get("transfer-encoding")
            .is_some_and(|value| value.eq_ignore_ascii_case(b"chunked"))
        {
            return Ok(Framing::Chunked);
        }
        let Some(length) = self.fields.get("content-length") else { return Ok(otherwise) };
        Ok(Framing::Length(std::str::from_utf8(length)?.parse().context("a bad content-length")?))
    }
}

/// Reads HTTP/1 messages from a socket, or from half of one.
#[derive(Debug)]
pub struct Wire<S> {
    pub stream: S,
    buffer: BytesMut,
}

impl<S: AsyncRead + Unpin> Wire<S> {
    pub fn new(stream: S) -> Self {
        Self { stream, buffer: BytesMut::new() }
    }

    /// The next message's head; none when the peer closed before it.
    pub async fn head(&mut self) -> Result<Option<RawHead>> {
        loop {
            if let Some(length) = find(&self.buffer, b"\r\n\r\n") {
                let head = self.buffer.split_to(length + 4);
                let line = find(&head, b"\r\n").context("a head without a first line")?;
                return Ok(Some(RawHead {
                    line: head[..line].to_vec(),
                    fields: fields(&head[line + 2..])?,
                }));
            }
            if !self.fill().await? {
                ensure!(self.buffer.is_empty(), "the peer closed in the middle of a head");
                return Ok(None);
            }
        }
    }

    /// A message's body and its trailers.
    pub async fn body(&mut self, framing: Framing) -> Result<(Bytes, Fields)> {
        match framing {
            Framing::Length(length) => {
                Ok((self.exactly(length.try_into()?).await?, Fields::default()))
            }
            Framing::UntilClose => {
                while self.fill().await? {}
                Ok((self.buffer.split().freeze(), Fields::default()))
            }
            Framing::Chunked => self.chunks().await,
        }
    }

    /// The next `length` bytes.
    pub async fn exactly(&mut self, length: usize) -> Result<Bytes> {
        while self.buffer.len() < length {
            ensure!(
                self.fill().await?,
                "the peer closed {} bytes early",
                length - self.buffer.len()
            );
        }
        Ok(self.buffer.split_to(length).freeze())
    }

    /// Returns when the peer has closed, whatever it sends before.
    pub async fn closed(&mut self) {
        while let Ok(true) = self.fill().await {}
    }

    /// Sends back every byte that comes, until the peer closes.
    pub async fn echo(&mut self) -> Result<()>
    where
        S: AsyncWrite,
    {
        loop {
            self.stream.write_all_buf(&mut self.buffer).await?;
            if !self.fill().await? {
                return Ok(());
            }
        }
    }

    async fn chunks(&mut self) -> Result<(Bytes, Fields)> {
        let mut body = BytesMut::new();
        loop {
            let line = self.line().await?;
            let size = line.split(|byte| *byte == b';').next().unwrap_or_default();
            match usize::from_str_radix(std::str::from_utf8(size)?.trim(), 16)
                .context("a bad chunk size")?
            {
                0 => break,
                size => body.extend_from_slice(&self.exactly(size).await?),
            }
            ensure!(self.line().await?.is_empty(), "a chunk longer than its size");
        }
        let mut trailers = BytesMut::new();
        loop {
            let line = self.line().await?;
            trailers.extend_from_slice(&line);
            trailers.extend_from_slice(b"\r\n");
            if line.is_empty() {
                return Ok((body.freeze(), fields(&trailers)?));
            }
        }
    }

    async fn line(&mut self) -> Result<Bytes> {
        loop {
            if let Some(length) = find(&self.buffer, b"\r\n") {
                let line = self.buffer.split_to(length).freeze();
                self.buffer.advance(2);
                return Ok(line);
            }
            ensure!(self.fill().await?, "the peer closed in the middle of a line");
        }
    }

    /// Reads what has come; false when the peer has closed.
    async fn fill(&mut self) -> Result<bool> {
        self.buffer.reserve(64 * 1024);
        Ok(self.stream.read_buf(&mut self.buffer).await? > 0)
    }
}

/// A request as HTTP/1.1 bytes.
pub fn encode_request(request: &Request) -> Vec<u8> {
    let Request { method, target, authority, headers, body } = request;
    encode(&format!("{method} {target} HTTP/1.1\r\nhost: {authority}\r\n"), headers, body)
}

/// An answer as HTTP/1.1 bytes: chunked when it has trailers, else with a length.
pub fn encode_response(response: &Response) -> Vec<u8> {
    let body = match response.status {
        100..200 | 204 | 304 => Body::Absent,
        _ if response.trailers.0.is_empty() => Body::Sized(response.body.clone()),
        _ => Body::Pieces(vec![response.body.clone()], response.trailers.clone()),
    };
    encode(&format!("HTTP/1.1 {} Told\r\n", response.status), &response.headers, &body)
}

/// An answer whose body never comes, as HTTP/1.1 bytes.
pub fn encode_stalled(response: &Response) -> Vec<u8> {
    let mut bytes = encode_response(response);
    bytes.truncate(bytes.len() - response.body.len());
    bytes
}

/// The head of an answer after which the connection is a tunnel, as HTTP/1.1 bytes.
pub fn encode_head(response: &Response) -> Vec<u8> {
    encode(&format!("HTTP/1.1 {} Told\r\n", response.status), &response.headers, &Body::Absent)
}

fn encode(line: &str, headers: &Fields, body: &Body) -> Vec<u8> {
    let mut bytes = line.as_bytes().to_vec();
    put(&mut bytes, headers);
    match body {
        Body::Absent => bytes.extend_from_slice(b"\r\n"),
        Body::Sized(body) => {
            bytes.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
            bytes.extend_from_slice(body);
        }
        Body::Pieces(pieces, trailers) => {
            bytes.extend_from_slice(b"transfer-encoding: chunked\r\n\r\n");
            for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
                bytes.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
                bytes.extend_from_slice(piece);
                bytes.extend_from_slice(b"\r\n");
            }
            bytes.extend_from_slice(b"0\r\n");
            put(&mut bytes, trailers);
            bytes.extend_from_slice(b"\r\n");
        }
    }
    bytes
}

fn put(bytes: &mut Vec<u8>, fields: &Fields) {
    for (name, value) in fields.iter() {
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(value);
        bytes.extend_from_slice(b"\r\n");
    }
}

fn fields(block: &[u8]) -> Result<Fields> {
    let mut parsed = [httparse::EMPTY_HEADER; MAX_FIELDS];
    match httparse::parse_headers(block, &mut parsed)? {
        httparse::Status::Complete((_, all)) => Ok(Fields(
            all.iter().map(|field| (field.name.to_owned(), field.value.to_owned())).collect(),
        )),
        httparse::Status::Partial => bail!("an unfinished field block: {}", block.escape_ascii()),
    }
}

fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|window| window == needle)
}
