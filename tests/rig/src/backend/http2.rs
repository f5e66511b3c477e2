//! A backend's side of an HTTP/2 connection.

use std::future::poll_fn;
use std::sync::Arc;

use anyhow::Result;
use bytes::{Bytes, BytesMut};
use h2::server::{SendResponse, handshake};
use h2::{Reason, RecvStream};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::record::{Head, Record, Recorded, Version};
use super::reply::Reply;
use crate::message::{Fields, Response};

/// Serves a connection until either side ends it.
pub(super) async fn serve(stream: TcpStream, record: Arc<Record>, connection: usize) -> Result<()> {
    let mut streams = handshake(stream).await?;
    let mut requests = JoinSet::new();
    while let Some(accepted) = streams.accept().await {
        let (request, respond) = accepted?;
        requests.spawn(exchange(request, respond, record.clone(), connection));
    }
    Ok(())
}

async fn exchange(
    request: http::Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    record: Arc<Record>,
    connection: usize,
) -> Result<()> {
    let (parts, mut receiving) = request.into_parts();
    let head = parse(&parts, connection);
    let (reply, _running) = record.arrived(&head);
    if let Reply::Early(response) = reply {
        return send(&mut respond, &response).await;
    }
    let mut body = BytesMut::new();
    while let Some(piece) = receiving.data().await.transpose()? {
        receiving.flow_control().release_capacity(piece.len())?;
        body.extend_from_slice(&piece);
    }
    let trailers = Fields::from_map(&receiving.trailers().await?.unwrap_or_default());
    record.whole(Recorded { head, body: body.freeze(), trailers });
    match reply {
        Reply::Respond(response) | Reply::RespondAndClose(response) => {
            send(&mut respond, &response).await
        }
        Reply::After(gate, response) => tokio::select! {
            () = gate.opened() => send(&mut respond, &response).await,
            _ = poll_fn(|context| respond.poll_reset(context)) => Ok(()),
        },
        Reply::Later(time, response) => tokio::select! {
            () = sleep(time) => send(&mut respond, &response).await,
            _ = poll_fn(|context| respond.poll_reset(context)) => Ok(()),
        },
        Reply::Stall(response) => {
            let mut open = respond.send_response(answer_head(&response)?, false)?;
            poll_fn(|context| open.poll_reset(context)).await?;
            Ok(())
        }
        Reply::Never => {
            poll_fn(|context| respond.poll_reset(context)).await?;
            Ok(())
        }
        Reply::Reset => {
            respond.send_reset(Reason::INTERNAL_ERROR);
            Ok(())
        }
        Reply::Early(_) => unreachable!("this has returned"),
        Reply::Tunnel(_) => anyhow::bail!("a tunnel needs HTTP/1"),
    }
}

fn parse(parts: &http::request::Parts, connection: usize) -> Head {
    Head {
        version: Version::Http2,
        method: parts.method.to_string(),
        path: parts.uri.path_and_query().map(|path| path.as_str().into()).unwrap_or_default(),
        authority: parts
            .uri
            .authority()
            .map(|authority| authority.as_str().into())
            .unwrap_or_default(),
        headers: Fields::from_map(&parts.headers),
        connection,
    }
}

fn answer_head(response: &Response) -> Result<http::Response<()>> {
    let mut head = http::Response::builder().status(response.status).body(())?;
    *head.headers_mut() = response.headers.to_map()?;
    Ok(head)
}

async fn send(respond: &mut SendResponse<Bytes>, response: &Response) -> Result<()> {
    let empty = response.body.is_empty() && response.trailers.0.is_empty();
    let mut sending = respond.send_response(answer_head(response)?, empty)?;
    if empty {
        return Ok(());
    }
    sending.send_data(response.body.clone(), response.trailers.0.is_empty())?;
    if !response.trailers.0.is_empty() {
        sending.send_trailers(response.trailers.to_map()?)?;
    }
    Ok(())
}
