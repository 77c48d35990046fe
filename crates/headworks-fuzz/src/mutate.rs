//! Mutations: what bit flips, cut lines and malice make of an input.

use fastrand::Rng;

/// No input grows beyond this: large ones are slow and find nothing that small ones do not.
const LONGEST: usize = 64 * 1024;

/// Numbers at which arithmetic goes wrong.
const EDGES: [u64; 12] = [
    0,
    1,
    0x7f,
    0xff,
    1 << 31,
    (1 << 32) - 1,
    1 << 53,
    1 << 62,
    (1 << 62) + 1,
    1 << 63,
    u64::MAX - 1,
    u64::MAX,
];
const FLOATS: [f64; 10] =
    [0.0, -0.0, -1.0, 1e300, -1e300, 1e-300, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MIN_POSITIVE];
const NUMERALS: [&[u8]; 10] =
    [b"0", b"-1", b"+1", b"1e999", b"1.5", b"NaN", b"4294967296", b"18446744073709551616", b"00", b"0x10"];

/// A mutation of one input of the corpus, in one to six steps.
pub(super) fn mutated(random: &mut Rng, corpus: &[Vec<u8>], words: &[&[u8]]) -> Vec<u8> {
    let mut input = random.choice(corpus).cloned().unwrap_or_default();
    for _ in 0..random.u32(1..=6) {
        step(random, &mut input, corpus, words);
    }
    input.truncate(LONGEST);
    input
}

fn step(random: &mut Rng, input: &mut Vec<u8>, corpus: &[Vec<u8>], words: &[&[u8]]) {
    let at = random.usize(0..=input.len());
    match random.u32(0..12) {
        0 => flip_bit(random, input),
        1 => set_byte(random, input),
        2 => input.truncate(at),
        3 => remove(random, input),
        4 => repeat(random, input),
        5 => splice(random, input, corpus),
        6 => insert(input, at, &varint(*random.choice(&EDGES).unwrap_or(&0))),
        7 => overwrite(input, at, &random.choice(FLOATS).unwrap_or(0.0).to_le_bytes()),
        8 => overwrite(input, at, &narrow(random.choice(FLOATS).unwrap_or(0.0)).to_le_bytes()),
        9 => overwrite(input, at, &random.choice(EDGES).unwrap_or(0).to_le_bytes()),
        10 => replace_numeral(random, input, at),
        _ => insert(input, at, random.choice(words).copied().unwrap_or(b"\n")),
    }
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "what is too large becomes infinite, which is an edge, too"
)]
fn narrow(float: f64) -> f32 {
    float as f32
}

fn flip_bit(random: &mut Rng, input: &mut [u8]) {
    if let Some(byte) = random.choice(input.iter_mut()) {
        *byte ^= 1 << random.u32(0..8);
    }
}

fn set_byte(random: &mut Rng, input: &mut [u8]) {
    if let Some(byte) = random.choice(input.iter_mut()) {
        *byte = random.u8(..);
    }
}

/// A part of the input: seldom long, or most steps would leave nothing.
fn part(random: &mut Rng, input: &[u8]) -> std::ops::Range<usize> {
    let start = random.usize(0..=input.len());
    let most = if random.u32(0..8) == 0 { input.len() } else { 32 };
    start..(start + random.usize(0..=most)).min(input.len())
}

fn remove(random: &mut Rng, input: &mut Vec<u8>) {
    let part = part(random, input);
    input.drain(part);
}

fn repeat(random: &mut Rng, input: &mut Vec<u8>) {
    let part = part(random, input);
    let (copy, end) = (input[part.clone()].to_vec(), part.end);
    for _ in 0..random.u32(1..=4) {
        insert(input, end, &copy);
    }
}

fn splice(random: &mut Rng, input: &mut Vec<u8>, corpus: &[Vec<u8>]) {
    let Some(other) = random.choice(corpus) else { return };
    let theirs = other[part(random, other)].to_vec();
    let ours = part(random, input);
    input.splice(ours, theirs);
}

fn replace_numeral(random: &mut Rng, input: &mut Vec<u8>, from: usize) {
    let Some(start) = (from..input.len()).find(|at| input[*at].is_ascii_digit()) else { return };
    let end = (start..input.len()).find(|at| !input[*at].is_ascii_digit()).unwrap_or(input.len());
    input.splice(start..end, random.choice(NUMERALS).unwrap_or(b"0").iter().copied());
}

fn insert(input: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    if input.len() + bytes.len() <= LONGEST {
        input.splice(at..at, bytes.iter().copied());
    }
}

fn overwrite(input: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    let end = (at + bytes.len()).min(input.len());
    input.splice(at..end, bytes.iter().copied());
}

/// A number as Protocol Buffers write it.
fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(number & 0x7f).unwrap_or(0);
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}
