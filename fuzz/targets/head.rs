//! Any bytes are a header map or refused; one that is read is what was written, and no header of
//! the original is lost or made up in the copy.
#![no_main]

mod serialize;

use libfuzzer_sys::fuzz_target;
use request_mirror::head::{Body, Head, Header};
use request_mirror::shadow;
use serialize::serialize;

fuzz_target!(|bytes: &[u8]| {
    let Some(head) = Head::parse(bytes.to_vec()) else { return };
    let headers: Vec<Header> = head.iter().collect();
    let again = Head::parse(serialize(&headers)).expect("a header map");
    assert!(again.iter().eq(headers.iter().copied()));
    let announced = match head.announces() {
        Body::Tunnel => 3,
        Body::Bytes(announced) => announced,
    };
    for body_length in [0, announced] {
        let Some(copied) = shadow::headers(&head, body_length) else { continue };
        let mut originals = headers.iter();
        assert!(copied.iter().all(|copied| originals.any(|original| original == copied)));
        let kept = |name: &[u8]| !name.starts_with(b"x-envoy-") && name != b"expect";
        let count = |headers: &[Header]| {
            headers.iter().filter(|(name, _)| kept(name) && *name != b"content-length").count()
        };
        assert_eq!(count(&copied), count(&headers));
    }
});
