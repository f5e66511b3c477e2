//! The requests: what each one is follows from its number, so that whoever holds a request can
//! tell what it must be.

use std::sync::LazyLock;

use rig::Request;

/// Sizes of POST bodies in bytes, in turn: mostly small ones, as in life, and a few that arrive in
/// many pieces.
const SIZES: [usize; 20] = [
    0, 5, 40, 200, 200, 500, 500, 1_000, 1_000, 1_000, //
    2_000, 2_000, 4_000, 4_000, 8_000, 16_000, 16_384, 16_385, 65_536, 300_000,
];

/// What every body is cut from.
static NOISE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut noise = vec![0; 1 << 20];
    fastrand::Rng::with_seed(1).fill(&mut noise);
    noise
});

/// Request `number` of a leg: GET and POST in turn.
pub fn request(leg: &str, number: usize) -> Request {
    let target = format!("/{leg}/orders%2F{number}?page=&note=%20{number}");
    let request = match body(number) {
        None => Request::get(&target),
        Some(body) => Request::post(&target, body).header("content-type", "text/plain"),
    };
    request
        .header("user-agent", "demo")
        .header("x-number", number.to_string())
        .header("x-name", b"Ren\xe9e") // one byte that is not UTF-8
        .header("x-twice", "1")
        .header("x-twice", "2")
}

/// The body of that request, if it has one.
pub fn body(number: usize) -> Option<&'static [u8]> {
    let size = SIZES[number / 2 % SIZES.len()];
    let from = number * 7_919 % (NOISE.len() - size);
    (number % 2 == 1).then(|| &NOISE[from..from + size])
}
