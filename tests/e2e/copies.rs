//! A copy is the request that the primary got: method, path, authority, headers, body.

use anyhow::{Result, ensure};
use bytes::Bytes;
use rig::{Backend, Body, Fields, Http1, Http2, Recorded, Reply, Request, Response};

use crate::stage::{Scenario, Stage};

/// What the contract takes off a copy: the first wait for an answer that nobody awaits, the others
/// would make Envoy retry the copy, or wait longer for it than the mirror's timeout.
const STRIPPED: [&str; 10] = [
    "expect",
    "x-envoy-upstream-rq-timeout-ms",
    "x-envoy-upstream-rq-per-try-timeout-ms",
    "x-envoy-retry-on",
    "x-envoy-retry-grpc-on",
    "x-envoy-max-retries",
    "x-envoy-hedge-on-per-try-timeout",
    "x-envoy-upstream-alt-stat-name",
    "x-envoy-upstream-rq-timeout-alt-response",
    "x-envoy-upstream-stream-duration-ms",
];

/// What Envoy puts on a copy, whatever the primary got.
const ADDED: [&str; 2] = ["x-envoy-internal", "x-envoy-expected-rq-timeout-ms"];

/// How a body is framed. A copy always tells its length.
const FRAMING: [&str; 2] = ["content-length", "transfer-encoding"];

#[tokio::test]
async fn a_path_arrives_byte_for_byte() -> Result<()> {
    one_copy(Request::get("/a%2Fb//c?x=1&y=%20&z")).await
}

/// The names of headers come in lower case, as Envoy gives them to the primary too.
#[tokio::test]
async fn headers_arrive_in_their_order_with_duplicates_and_every_byte() -> Result<()> {
    let request = Request::get("/headers")
        .header("z-first", "1")
        .header("a-second", "2")
        .header("z-first", "3")
        .header("latin", b"\xe9\xff")
        .header("cookie", "a=1; b=2")
        .header("empty", "")
        .header("user-agent", "curl/8");
    one_copy(request).await
}

/// Close to the 60 KiB and 100 fields that Envoy takes by default.
#[tokio::test]
async fn a_large_head_arrives() -> Result<()> {
    let large = (0..80).fold(Request::get("/"), |request, number| {
        request.header(&format!("x-large-{number}"), "v".repeat(600))
    });
    one_copy(large).await
}

/// At an edge, Envoy tells the primary where the client is; the copy tells the same.
#[tokio::test]
async fn the_clients_address_arrives() -> Result<()> {
    let counters = Scenario::all()
        .await?
        .setup(|setup| setup.patch(|config| config.http()["use_remote_address"] = true.into()))
        .play(async |stage| {
            stage.send(&Request::get("/").header("x-forwarded-for", "203.0.113.7")).await?;
            faithful(stage, 1).await?;
            let copies = stage.shadow.recorded(1).await?;
            let forwarded = copies[0].head.headers.get("x-forwarded-for").unwrap_or_default();
            ensure!(forwarded.starts_with(b"203.0.113.7,"), "not from the edge:\n{}", copies[0]);
            Ok(())
        })
        .await?;
    assert_eq!(counters.get("completed_2xx"), 1);
    Ok(())
}

#[tokio::test]
async fn an_authority_with_a_port_arrives() -> Result<()> {
    one_copy(Request { authority: "shop.example:8443".into(), ..Request::get("/") }).await
}

#[tokio::test]
async fn head_delete_and_an_unknown_method_arrive() -> Result<()> {
    copies(["HEAD", "DELETE", "OPTIONS", "PURGE"].map(|method| Request::new(method, "/m"))).await
}

#[tokio::test]
async fn a_body_of_known_length_arrives() -> Result<()> {
    copies([0, 1, 5, 300_000].map(|length| Request::post("/sized", body(length)))).await
}

#[tokio::test]
async fn a_chunked_body_arrives_whole() -> Result<()> {
    let pieces = [1, 70_000, 3].map(body).to_vec();
    one_copy(Request::new("POST", "/").body(Body::Pieces(pieces, Fields::default()))).await
}

/// The trailers end the request: no other callback tells that the body is whole.
#[tokio::test]
async fn a_chunked_body_with_trailers_arrives_whole() -> Result<()> {
    one_copy(Request::new("POST", "/").body(with_trailers([body(5), body(20_000)]))).await
}

/// The end of the stream comes in a body callback without a byte.
#[tokio::test]
async fn an_http2_body_that_ends_in_an_empty_frame_arrives_whole() -> Result<()> {
    let pieces = vec![body(5), body(1_000), Bytes::new()];
    one_http2_copy(Request::new("POST", "/").body(Body::Pieces(pieces, Fields::default()))).await
}

#[tokio::test]
async fn an_http2_body_with_trailers_arrives_whole() -> Result<()> {
    one_http2_copy(Request::new("POST", "/").body(with_trailers([body(5)]))).await
}

/// A request whose only end is its trailers: no byte of body at all.
#[tokio::test]
async fn an_http2_request_of_nothing_but_trailers_arrives() -> Result<()> {
    one_http2_copy(Request::new("POST", "/").body(with_trailers([]))).await
}

#[tokio::test]
async fn a_grpc_call_arrives_at_an_http2_shadow() -> Result<()> {
    let done = Response::new(200).header("content-type", "application/grpc");
    let done = Reply::Respond(done.body(&b"\0\0\0\0\x02ok"[..]).trailer("grpc-status", "0"));
    let request = Request::new("POST", "/shop.Cart/Add")
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("grpc-timeout", "5S")
        .body(Body::Pieces(vec![b"\0\0\0\0\x05hello"[..].into()], Fields::default()));
    let counters = Scenario::all()
        .await?
        .primary(Backend::always(done.clone()).await?)
        .shadow(Backend::always(done).await?)
        .setup(|setup| setup.http2("primary").http2("shadow"))
        .play(async |stage| {
            let answer = Http2::connect(stage.envoy.address()).await?.request(&request).await?;
            assert_eq!(answer.trailers.get("grpc-status"), Some(&b"0"[..]));
            faithful(stage, 1).await
        })
        .await?;
    assert_eq!(counters.get("completed_2xx"), 1);
    Ok(())
}

/// Envoy answers `100 Continue` itself and takes `expect` off, unless it is told to pass both on.
/// In neither case may the copy have it: the shadow would wait for a body it already has.
#[tokio::test]
async fn a_body_sent_after_100_continue_arrives_without_expect() -> Result<()> {
    for pass_on in [false, true] {
        Scenario::all()
            .await?
            .setup(move |setup| setup.patch(|config| config.http()["proxy_100_continue"] = pass_on.into()))
            .play(async |stage| {
                let mut client = Http1::connect(stage.envoy.address()).await?;
                let head = "POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n";
                client.send(head.as_bytes()).await?;
                assert_eq!(client.answer().await?.status, 100);
                client.send(b"hello").await?;
                assert_eq!(client.answer().await?.status, 200);
                faithful(stage, 1).await?;
                let primary = stage.primary.recorded(1).await?;
                assert_eq!(primary[0].head.headers.get("expect").is_some(), pass_on);
                let copy = stage.shadow.recorded(1).await?;
                assert_eq!(copy[0].head.headers.get("expect"), None);
                Ok(())
            })
            .await?;
    }
    Ok(())
}

/// Envoy has no way to send the trailers of a call that a filter makes.
#[tokio::test]
async fn request_trailers_do_not_reach_the_shadow() -> Result<()> {
    Scenario::all()
        .await?
        .setup(|setup| setup.http2("primary").http2("shadow"))
        .play(async |stage| {
            let request = Request::new("POST", "/").body(with_trailers([body(5)]));
            Http2::connect(stage.envoy.address()).await?.request(&request).await?;
            let primary = stage.primary.recorded(1).await?;
            assert_eq!(primary[0].trailers.get("checksum"), Some(&b"42"[..]));
            assert_eq!(stage.shadow.recorded(1).await?[0].trailers, Fields::default());
            faithful(stage, 1).await
        })
        .await?;
    Ok(())
}

async fn one_copy(request: Request) -> Result<()> {
    copies([request]).await
}

/// Each of these requests, on one HTTP/1 connection, is answered and copied once.
async fn copies<const N: usize>(requests: [Request; N]) -> Result<()> {
    let test = async |stage: &Stage| {
        let mut client = Http1::connect(stage.envoy.address()).await?;
        for (index, request) in requests.iter().enumerate() {
            assert_eq!(client.request(request).await?.status, 200);
            faithful(stage, index + 1).await?; // one after another, so that they pair up
        }
        Ok(())
    };
    let counters = Scenario::all().await?.play(test).await?;
    assert_eq!(counters.get("completed_2xx"), N as u64);
    Ok(())
}

async fn one_http2_copy(request: Request) -> Result<()> {
    let test = async |stage: &Stage| {
        let answer = Http2::connect(stage.envoy.address()).await?.request(&request).await?;
        assert_eq!(answer.status, 200);
        faithful(stage, 1).await
    };
    let counters = Scenario::all().await?.play(test).await?;
    assert_eq!(counters.get("completed_2xx"), 1);
    Ok(())
}

/// Waits until either side has that many requests, and compares the last of each.
async fn faithful(stage: &Stage, requests: usize) -> Result<()> {
    let primary = stage.primary.recorded(requests).await?;
    let shadow = stage.shadow.recorded(requests).await?;
    same_request(&primary[requests - 1], &shadow[requests - 1])
}

fn same_request(original: &Recorded, copy: &Recorded) -> Result<()> {
    ensure!(copy.head.method == original.head.method, "another method:\n{original}\n{copy}");
    ensure!(copy.head.path == original.head.path, "another path:\n{original}\n{copy}");
    ensure!(
        copy.head.authority == original.head.authority,
        "another authority:\n{original}\n{copy}"
    );
    ensure!(copy.body == original.body, "another body:\n{original}\n{copy}");
    let length = original.body.len().to_string();
    let chunked = original.head.headers.get("transfer-encoding").is_some();
    let expected = match chunked || !original.body.is_empty() {
        true => Some(length.as_bytes()),
        false => original.head.headers.get("content-length"),
    };
    ensure!(
        copy.head.headers.get("content-length") == expected
            && copy.head.headers.get("transfer-encoding").is_none(),
        "another framing:\n{original}\n{copy}"
    );
    let ours = [&STRIPPED[..], &ADDED, &FRAMING].concat();
    let (sent, got) = (&original.head.headers, &copy.head.headers);
    ensure!(sent.without(&ours) == got.without(&ours), "other headers:\n{original}\n{copy}");
    for name in STRIPPED {
        ensure!(got.get(name).is_none(), "{name} is on the copy:\n{copy}");
    }
    for name in ADDED {
        ensure!(got.get(name).is_some(), "{name} is no longer added by Envoy:\n{copy}");
    }
    Ok(())
}

/// Bytes that are not all alike, so that a lost or swapped piece shows.
fn body(length: usize) -> Bytes {
    (0..length).map(|index| (index % 251) as u8).collect()
}

fn with_trailers<const N: usize>(pieces: [Bytes; N]) -> Body {
    let mut trailers = Fields::default();
    trailers.push("checksum", "42");
    Body::Pieces(pieces.to_vec(), trailers)
}
