use std::time::Duration;

use super::*;
use crate::budget::Budget;
use crate::testing::{FakeHost, limits, post, target};

/// An outbox that may hold ten mirrors and a hundred bytes, and the host that it uses.
fn outbox() -> (Outbox<FakeHost>, FakeHost) {
    let host = FakeHost::default();
    let budget = Budget::new(1, limits(10, 100), Duration::from_millis(100));
    (Outbox::new(host.clone(), budget), host)
}

fn begin(outbox: &Outbox<FakeHost>, headers: &[(&str, &[u8])], limits: &[u64]) -> Request {
    let targets = limits.iter().map(|limit| target(&format!("up to {limit}"), *limit)).collect();
    Request::begin(outbox, post(headers), targets, false)
}

fn chunk(request: &mut Request, outbox: &Outbox<FakeHost>, bytes: &[u8], last: bool) {
    request.body(outbox, bytes.len(), last, || Some(bytes.to_vec()));
}

/// What was sent: each cluster and the body's length.
fn sent(outbox: &Outbox<FakeHost>, host: &FakeHost) -> Vec<(String, usize)> {
    outbox.tick();
    host.calls.borrow().iter().map(|(cluster, body)| (cluster.clone(), body.len())).collect()
}

#[test]
fn a_request_without_a_body_is_whole_with_its_headers() {
    let (outbox, host) = outbox();
    let request = Request::begin(&outbox, post(&[]), vec![target("shadow", 0)], true);
    assert!(matches!(request, Request::Passing));
    assert_eq!(sent(&outbox, &host), [("shadow".to_owned(), 0)]);
}

#[test]
fn chunks_are_put_together_and_an_empty_last_one_ends_the_request() {
    let (outbox, host) = outbox();
    let mut request = begin(&outbox, &[], &[100]);
    chunk(&mut request, &outbox, b"hel", false);
    chunk(&mut request, &outbox, b"lo", false);
    assert!(sent(&outbox, &host).is_empty());
    chunk(&mut request, &outbox, b"", true);
    outbox.tick();
    assert_eq!(*host.calls.borrow(), [("up to 100".to_owned(), b"hello".to_vec())]);
}

#[test]
fn trailers_end_the_request() {
    let (outbox, host) = outbox();
    let mut request = begin(&outbox, &[], &[100]);
    chunk(&mut request, &outbox, b"hello", false);
    request.trailers(&outbox);
    assert_eq!(sent(&outbox, &host).len(), 1);
}

#[test]
fn a_body_longer_than_a_mirrors_limit_is_dropped_for_that_mirror_alone() {
    let (outbox, host) = outbox();
    let mut request = begin(&outbox, &[], &[4, 5, 6]);
    chunk(&mut request, &outbox, b"hel", false);
    chunk(&mut request, &outbox, b"lo", true);
    let copies = [("up to 5".to_owned(), 5), ("up to 6".to_owned(), 5)];
    assert_eq!(sent(&outbox, &host), copies);
    assert_eq!((host.counted("selected"), host.counted("dropped.body_too_large")), (3, 1));
}

#[test]
fn a_body_announced_as_too_long_is_not_even_begun() {
    let (outbox, host) = outbox();
    let request = begin(&outbox, &[("content-length", b"6")], &[5]);
    assert!(matches!(request, Request::Passing));
    assert_eq!(host.counted("dropped.body_too_large"), 1);
}

#[test]
fn several_mirrors_of_one_body_hold_it_once_and_until_the_last_one_ends() {
    let (outbox, host) = outbox();
    let mut request = begin(&outbox, &[], &[60, 60]);
    chunk(&mut request, &outbox, &[7; 60], true);
    drop(request);
    outbox.tick();
    assert_eq!(host.gauged("buffered_bytes"), 60);
    outbox.ended(crate::outbox::CallId(1), None);
    outbox.tick();
    assert_eq!(host.gauged("buffered_bytes"), 60);
    outbox.ended(crate::outbox::CallId(2), None);
    outbox.tick();
    assert_eq!((host.gauged("buffered_bytes"), host.gauged("in_flight")), (0, 0));
}

#[test]
fn a_body_that_finds_no_room_is_dropped_and_frees_what_it_held() {
    let (outbox, host) = outbox();
    let (mut first, mut second) = (begin(&outbox, &[], &[100]), begin(&outbox, &[], &[100]));
    chunk(&mut first, &outbox, &[1; 60], false);
    chunk(&mut second, &outbox, &[2; 30], false);
    chunk(&mut second, &outbox, &[2; 30], false);
    assert_eq!(host.counted("dropped.buffer_full"), 1);
    chunk(&mut first, &outbox, &[1; 40], true);
    assert_eq!(sent(&outbox, &host), [("up to 100".to_owned(), 100)]);
}

#[test]
fn a_request_that_ends_before_it_is_whole_is_incomplete() {
    let (outbox, host) = outbox();
    let mut request = begin(&outbox, &[], &[100, 100]);
    chunk(&mut request, &outbox, b"hel", false);
    request.over(&outbox);
    assert!(sent(&outbox, &host).is_empty());
    assert_eq!((host.counted("dropped.incomplete"), host.gauged("buffered_bytes")), (2, 0));
    request.over(&outbox);
    assert_eq!(host.counted("dropped.incomplete"), 2);
}

#[test]
fn a_tunnel_is_skipped_and_not_selected() {
    let (outbox, host) = outbox();
    let request = begin(&outbox, &[("upgrade", b"websocket")], &[100]);
    assert!(matches!(request, Request::Passing));
    assert_eq!((host.counted("skipped.upgrade"), host.counted("selected")), (1, 0));
}

#[test]
fn headers_that_find_no_room_are_dropped_until_others_are_sent() {
    let (outbox, host) = outbox();
    let large = vec![b'x'; 1024 * 1024];
    let headers: [(&str, &[u8]); 1] = [("x", &large)];
    let mut slow: Vec<_> = (0..32).map(|_| begin(&outbox, &headers, &[100])).collect();
    assert_eq!(host.counted("dropped.buffer_full"), 1);
    slow.iter_mut().for_each(|request| request.over(&outbox));
    assert!(matches!(begin(&outbox, &headers, &[100]), Request::Collecting(_)));
}
