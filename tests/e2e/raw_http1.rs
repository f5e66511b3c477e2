//! Bytes that no HTTP library sends: the client gets the very answer, and the primary the very
//! request, that each gets without the mirror.

use std::fmt::Write;
use std::net::SocketAddr;

use anyhow::{Result, ensure};
use rig::wait::within_deadline;
use rig::{Backend, Head, Reply, Request, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::stage::Scenario;

/// Pipelined behind each case, so that Envoy closes the connection whatever it made of the case.
const LAST: &[u8] = b"GET /last HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";

#[tokio::test]
async fn odd_requests_are_answered_as_without_the_mirror() -> Result<()> {
    let long_path =
        [b"GET /", vec![b'p'; 50_000].as_slice(), b"?q HTTP/1.1\r\nhost: a\r\n\r\n"].concat();
    let too_long =
        [b"GET /", vec![b'p'; 65_536].as_slice(), b" HTTP/1.1\r\nhost: a\r\n\r\n"].concat();
    let many = |n: usize| {
        let fields: String = (0..n).map(|n| format!("x-{n}: {n}\r\n")).collect();
        format!("GET /many HTTP/1.1\r\nhost: a\r\n{fields}\r\n").into_bytes()
    };
    let large = |n: usize| {
        format!("GET /large HTTP/1.1\r\nhost: a\r\nx: {}\r\n\r\n", "v".repeat(n)).into_bytes()
    };
    let tiny_chunks = [
        b"POST /chunks HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n".as_slice(),
        &b"1\r\nx\r\n".repeat(5_000),
        b"0\r\n\r\n",
    ];
    let generated = [
        long_path,
        too_long,
        many(90),
        many(200),
        large(50_000),
        large(70_000),
        tiny_chunks.concat(),
    ];
    let written: [&[u8]; 34] = [
        b"PROPFIND /dav HTTP/1.1\r\nhost: a\r\n\r\n",
        b"M-SEARCH * HTTP/1.1\r\nhost: a\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nhost: a\r\n\r\n",
        b"!#$%&'*+-.^_`|~ / HTTP/1.1\r\nhost: a\r\n\r\n",
        b"get /lower HTTP/1.1\r\nhost: a\r\n\r\n",
        b"GET  /two-spaces HTTP/1.1\r\nhost: a\r\n\r\n",
        b"GET nothing HTTP/1.1\r\nhost: a\r\n\r\n",
        b"GET http://b/absolute?x HTTP/1.1\r\nhost: a\r\n\r\n",
        b"GET /%00%ff%zz/../..//./%2e%2e HTTP/1.1\r\nhost: a\r\n\r\n",
        b"GET /high-\xff\xfe\x80 HTTP/1.1\r\nhost: a\r\n\r\n",
        b"GET /nul-\0 HTTP/1.1\r\nhost: a\r\n\r\n",
        b"GET /fragment#here HTTP/1.1\r\nhost: a\r\n\r\n",
        b"GET ?query-alone HTTP/1.1\r\nhost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost:\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: \xff\xfe:99999\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: [::1]:80\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: a\r\nempty:\r\nspaces:   \r\n: no-name\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: a\r\nhigh: \xe9\xff\x80\r\nhigh: \xc3\x28\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: a\r\nnul: a\0b\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: a\r\nn\xffme: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: a\r\nfolded: a\r\n b\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: a\r\n:path: /other\r\n:method: POST\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: a\r\nconnection: host, x-y\r\nx-y: 1\r\nte: trailers, chunked\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello",
        b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5, 5\r\n\r\nhello",
        b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: -1\r\n\r\nhello",
        b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 99999999999999999999\r\n\r\nhello",
        b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: gzip\r\n\r\nhello",
        b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\nhello\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n5;ext=\xff\r\nhello\r\n0\r\nt: \xff\r\nt:\r\n\r\n",
        b"GET / HTTP/9.9\r\nhost: a\r\n\r\n",
    ];
    compare(generated.iter().map(Vec::as_slice).chain(written).map(<[u8]>::to_vec).collect()).await
}

/// Requests put together at random, the same ones in each run.
#[tokio::test]
async fn requests_put_together_at_random_are_answered_as_without_the_mirror() -> Result<()> {
    const STARTS: [&[u8]; 8] = [
        b"GET /",
        b"POST /",
        b"DELETE /",
        b"HEAD /",
        b"X /",
        b"OPTIONS *",
        b"PUT //",
        b"GET http://b/",
    ];
    const FRAMINGS: [&[u8]; 5] = [
        b"\r\n",
        b"content-length: 0\r\n\r\n",
        b"content-length: 3\r\n\r\nabc",
        b"transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        b"expect: 100-continue\r\ncontent-length: 3\r\n\r\nabc",
    ];
    const NAMES: [&[u8]; 8] = [
        b"a",
        b"x-envoy-retry-on",
        b"x-envoy-upstream-rq-timeout-ms",
        b"content-type",
        b"cookie",
        b"x-request-id",
        b"te",
        b"x-forwarded-for",
    ];
    let mut state = 7_u32;
    let mut random = move |below: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) as usize % below
    };
    let mut cases = Vec::new();
    for _ in 0..100 {
        let mut case = STARTS[random(STARTS.len())].to_vec();
        // Any byte that does not end the path or the line.
        let path = std::iter::repeat_with(|| random(256) as u8).take(6);
        case.extend(path.filter(|byte| !b" \r\n".contains(byte)).collect::<Vec<_>>());
        case.extend(b" HTTP/1.1\r\nhost: a\r\n");
        for _ in 0..random(5) {
            case.extend([NAMES[random(NAMES.len())], b": "].concat());
            let length = random(9);
            let value = std::iter::repeat_with(|| random(256) as u8).take(length);
            case.extend(value.filter(|byte| !b"\r\n".contains(byte)).collect::<Vec<_>>());
            case.extend(b"\r\n");
        }
        case.extend(FRAMINGS[random(FRAMINGS.len())]);
        cases.push(case);
    }
    compare(cases).await
}

async fn compare(cases: Vec<Vec<u8>>) -> Result<()> {
    Scenario::all()
        .await?
        .primary(Backend::start(told).await?)
        .setup(|setup| {
            // Envoy waits so long for a client to close first, a second by default.
            let change =
                |config: &mut rig::Config| config.http()["delayed_close_timeout"] = "0.05s".into();
            setup.workers(4).patch(change)
        })
        .play(async |stage| {
            for case in &cases {
                let with = exchange(stage.envoy.address(), case);
                let (mirrored, plain) =
                    tokio::try_join!(with, exchange(stage.envoy.plain_address(), case))?;
                ensure!(
                    mirrored == plain,
                    "{} is answered with\n{}\ninstead of\n{}",
                    case.escape_ascii(),
                    mirrored.escape_ascii(),
                    plain.escape_ascii()
                );
            }
            stage.still_mirrors(async || stage.send(&Request::get("/alive")).await).await
        })
        .await?;
    Ok(())
}

/// Answers with the request, but for what is new each time.
fn told(head: &Head) -> Reply {
    let headers = head.headers.without(&["x-request-id"]);
    let mut text = format!("{} {}\n", head.method, head.path.escape_ascii());
    let _ = write!(text, "{headers}"); // text takes everything
    Reply::Respond(Response::new(200).body(text))
}

/// All bytes that come back, but for what is new each time.
async fn exchange(address: SocketAddr, case: &[u8]) -> Result<Vec<u8>> {
    let mut stream = TcpStream::connect(address).await?;
    // Envoy may have closed before all of it is sent, or answer while it is.
    let (mut reading, mut writing) = stream.split();
    let mut answer = Vec::new();
    let both = async {
        let bytes = [case, LAST].concat();
        tokio::join!(writing.write_all(&bytes), reading.read_to_end(&mut answer))
    };
    let _ = within_deadline("the end of the connection", both).await?;
    let stays = |line: &&[u8]| {
        !line.starts_with(b"date: ") && !line.starts_with(b"x-envoy-upstream-service-time: ")
    };
    Ok(answer.split_inclusive(|byte| *byte == b'\n').filter(stays).flatten().copied().collect())
}
