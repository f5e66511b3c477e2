//! A backend's side of an HTTP/1 connection.

use std::sync::Arc;

use anyhow::{Result, bail};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::record::{Head, Record, Recorded, Version};
use super::reply::Reply;
use crate::broken::reset;
use crate::message::Response;
use crate::wire::{Framing, RawHead, Wire, encode_head, encode_response, encode_stalled};

/// Serves a connection until either side ends it.
pub(super) async fn serve(stream: TcpStream, record: Arc<Record>, connection: usize) -> Result<()> {
    let mut wire = Wire::new(stream);
    while let Some(raw) = wire.head().await? {
        let framing = raw.framing(Framing::Length(0))?;
        let expects = raw.fields.get("expect").is_some();
        let head = parse(raw, connection)?;
        let (reply, _running) = record.arrived(&head);
        match reply {
            Reply::Early(response) => return send(&mut wire, &response).await,
            Reply::Tunnel(response) => {
                record.whole(Recorded {
                    head,
                    body: Default::default(),
                    trailers: Default::default(),
                });
                return tunnel(wire, &response).await;
            }
            _ if expects => wire.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?,
            _ => {}
        }
        let (body, trailers) = wire.body(framing).await?;
        record.whole(Recorded { head, body, trailers });
        match reply {
            Reply::Respond(response) => send(&mut wire, &response).await?,
            Reply::After(gate, response) => tokio::select! {
                () = gate.opened() => send(&mut wire, &response).await?,
                () = wire.closed() => return Ok(()),
            },
            Reply::Later(time, response) => tokio::select! {
                () = sleep(time) => send(&mut wire, &response).await?,
                () = wire.closed() => return Ok(()),
            },
            Reply::RespondAndClose(response) => return send(&mut wire, &response).await,
            Reply::Stall(response) => {
                wire.stream.write_all(&encode_stalled(&response)).await?;
                wire.closed().await;
            }
            Reply::Never => wire.closed().await,
            Reply::Reset => {
                reset(&wire.stream);
                return Ok(());
            }
            Reply::Early(_) | Reply::Tunnel(_) => unreachable!("these have returned"),
        }
    }
    Ok(())
}

fn parse(raw: RawHead, connection: usize) -> Result<Head> {
    let mut parts = raw.line.splitn(3, |byte| *byte == b' ');
    let (Some(method), Some(path)) = (parts.next(), parts.next()) else {
        bail!("no request line: {}", raw.line.escape_ascii());
    };
    Ok(Head {
        version: Version::Http1,
        method: String::from_utf8_lossy(method).into_owned(),
        path: path.to_owned(),
        authority: raw.fields.get("host").unwrap_or_default().to_owned(),
        headers: raw.fields,
        connection,
    })
}

async fn send(wire: &mut Wire<TcpStream>, response: &Response) -> Result<()> {
    Ok(wire.stream.write_all(&encode_response(response)).await?)
}

async fn tunnel(mut wire: Wire<TcpStream>, response: &Response) -> Result<()> {
    wire.stream.write_all(&encode_head(response)).await?;
    wire.echo().await
}
