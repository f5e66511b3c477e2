//! HTTP/2 frames that no library sends: each stream ends as it ends without the mirror.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use anyhow::{Result, ensure};
use rig::wait::within_deadline;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::stage::Scenario;

type Fields<'a> = &'a [(&'a [u8], &'a [u8])];

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const GET: [(&[u8], &[u8]); 4] =
    [(b":method", b"GET"), (b":scheme", b"http"), (b":authority", b"a"), (b":path", b"/")];

/// The client gives up stream 1.
const RESET: &[u8] = b"\0\0\x04\x03\0\0\0\0\x01\0\0\0\x08";

/// What came back on a stream: the start of each header block, all data, and how it was reset.
type Answers = BTreeMap<u32, Vec<(u8, Vec<u8>)>>;

#[tokio::test]
async fn odd_frames_are_answered_as_without_the_mirror() -> Result<()> {
    let more = |fields: Fields| headers(1, &[&GET, fields].concat(), true);
    let without = |place: usize| {
        let rest = GET.iter().enumerate().filter(|(n, _)| *n != place);
        headers(1, &rest.map(|(_, field)| *field).collect::<Vec<_>>(), true)
    };
    let path = |path: &[u8]| headers(1, &[GET[0], GET[1], GET[2], (b":path", path)], true);
    let large = vec![b'v'; 50_000];
    let huge = vec![b'v'; 70_000];
    let body = |fields: Fields, frames: &[(&[u8], u8)]| {
        let frames = frames.iter().flat_map(|(data, flags)| frame(0, *flags, 1, data));
        headers(1, &[&GET[1..], &[(b":method", b"POST")], fields].concat(), false)
            .into_iter()
            .chain(frames)
            .collect::<Vec<u8>>()
    };
    let cases = [
        more(&[(b":path", b"/again")]),
        more(&[(b":authority", b"b"), (b"host", b"c")]),
        more(&[(b"host", b"other")]),
        more(&[(b":unknown", b"x")]),
        more(&[(b":status", b"200")]),
        more(&[(b"empty", b""), (b"", b"no name")]),
        more(&[(b"Upper", b"case")]),
        more(&[(b"high", b"\xff\xfe\x80"), (b"high", b"\xc3\x28")]),
        more(&[(b"nul", b"a\0b")]),
        more(&[(b"line", b"a\r\nb: c")]),
        more(&[(b"spaces", b"  a  ")]),
        more(&[(b"connection", b"close"), (b"transfer-encoding", b"chunked")]),
        more(&[(b"te", b"gzip"), (b"upgrade", b"websocket")]),
        more(&[(b"content-length", b"5")]),
        more(&[(b"large", &large)]),
        more(&[(b"huge", &huge)]),
        more(&[(b"x".as_slice(), b"y".as_slice()); 90]),
        more(&[(b"x".as_slice(), b"y".as_slice()); 500]),
        without(0),
        without(1),
        without(2),
        without(3),
        path(b""),
        path(b"*"),
        path(b"no-slash"),
        path(b"/\0"),
        path(b"/high-\xff?\xfe#x"),
        path(&[b"/", large.as_slice()].concat()),
        headers(1, &[(b":method", b"CONNECT"), (b":authority", b"a:1")], true),
        headers(1, &[(b":method", b"A B"), GET[1], GET[2], GET[3]], true),
        headers(1, &[(b":method", b""), GET[1], GET[2], GET[3]], true),
        body(&[], &[(b"", END_STREAM)]),
        body(&[], &[(b"", 0), (b"", 0), (b"a", 0), (b"", END_STREAM)]),
        body(&[(b"content-length", b"3")], &[(b"abcd", END_STREAM)]),
        body(&[(b"content-length", b"3")], &[(b"a", END_STREAM)]),
        body(&[(b"content-length", b"x")], &[(b"a", END_STREAM)]),
        body(&[], &[(b"\x05padded\0\0\0\0\0", 8 | END_STREAM)]),
        [body(&[], &[(b"a", 0)]), headers(1, &[(b"t", b"\xff")], true)].concat(),
        [body(&[], &[(b"a", 0)]), headers(1, &[(b":path", b"/")], true)].concat(),
        [body(&[], &[(b"a", 0)]), RESET.to_vec()].concat(),
        [more(&[]), frame(0, END_STREAM, 1, b"after the end")].concat(),
        frame(1, END_HEADERS | END_STREAM, 1, b"\xff\xff\xff\xff\xff\xff"), // no HPACK
    ];
    Scenario::all()
        .await?
        .setup(|setup| {
            let change = |config: &mut rig::Config| {
                config.http()["delayed_close_timeout"] = "0.05s".into();
            };
            setup.workers(4).patch(change)
        })
        .play(async |stage| {
            for (number, case) in cases.iter().enumerate() {
                let with = exchange(stage.envoy.address(), case);
                let without = exchange(stage.envoy.plain_address(), case);
                let (with, without) = tokio::try_join!(with, without)?;
                ensure!(with == without, "case {number}: {with:?} instead of {without:?}");
            }
            stage.still_mirrors(async || exchange(stage.envoy.address(), &[]).await).await
        })
        .await?;
    Ok(())
}

/// Sends a case on stream 1 and a request without fault on stream 3, and reads until both have
/// ended, or Envoy closes.
async fn exchange(address: SocketAddr, case: &[u8]) -> Result<Answers> {
    let mut stream = TcpStream::connect(address).await?;
    let preface = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice(), &frame(4, 0, 0, &[])].concat();
    stream.write_all(&[&preface, case, &headers(3, &GET, true)].concat()).await?;
    let mut open = vec![3];
    if !case.is_empty() && !case.ends_with(RESET) {
        open.push(1);
    }
    within_deadline("the end of the streams", answers(&mut stream, open)).await
}

async fn answers(stream: &mut TcpStream, mut open: Vec<u32>) -> Answers {
    let mut answers = Answers::new();
    while let Ok((kind, flags, id, payload)) = next_frame(stream).await {
        match kind {
            0 => answers.entry(id).or_default().push((kind, payload)),
            // Indices depend on what the connection has sent before; the status is what begins.
            1 => answers.entry(id).or_default().push((kind, payload[..1].to_vec())),
            3 => answers.entry(id).or_default().push((kind, payload)),
            7 => answers.entry(0).or_default().push((kind, payload[4..8].to_vec())),
            _ => {}
        }
        if kind == 3 || (kind < 2 && flags & END_STREAM > 0) {
            open.retain(|stream| *stream != id);
        }
        if open.is_empty() {
            break;
        }
    }
    answers
}

async fn next_frame(stream: &mut TcpStream) -> Result<(u8, u8, u32, Vec<u8>)> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).await?;
    let [a, b, c, kind, flags, id @ ..] = head;
    let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
    stream.read_exact(&mut payload).await?;
    Ok((kind, flags, u32::from_be_bytes(id), payload))
}

/// HEADERS, and CONTINUATION where one frame is not enough.
fn headers(stream: u32, fields: Fields, is_end: bool) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0); // a literal that is not to be indexed, its name written out
        put(&mut block, name);
        put(&mut block, value);
    }
    let mut frames = Vec::new();
    let pieces: Vec<_> = block.chunks(16_000).collect();
    for (index, piece) in pieces.iter().enumerate() {
        let end_headers = if index + 1 == pieces.len() { END_HEADERS } else { 0 };
        let (kind, end_stream) = if index == 0 { (1, u8::from(is_end)) } else { (9, 0) };
        frames.extend(frame(kind, end_headers | end_stream, stream, piece));
    }
    frames
}

/// A string as HPACK writes it, without Huffman's code.
fn put(block: &mut Vec<u8>, string: &[u8]) {
    let mut rest = string.len();
    if rest < 127 {
        block.push(rest as u8);
    } else {
        block.push(127);
        rest -= 127;
        while rest >= 128 {
            block.push((rest % 128) as u8 | 128);
            rest /= 128;
        }
        block.push(rest as u8);
    }
    block.extend_from_slice(string);
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, length @ ..] = (payload.len() as u32).to_be_bytes();
    [&length, [kind, flags].as_slice(), &stream.to_be_bytes(), payload].concat()
}
