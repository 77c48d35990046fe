//! Whatever a client asks: an answer or a refusal, never a panic, and no attribute that is over its bound or twice there.

use std::collections::HashSet;

use super::query::{MAX_ATTRIBUTES, MAX_COST, MAX_NAME_BYTES, MAX_VALUE_BYTES, Query};

const CORPUS: [&str; 8] = [
    "key=K&n=3&service=checkout",
    "key=%E6%9D%B1%E4%BA%AC+x&caf%C3%A9=x",
    "&key=a&&b=&",
    "key=a%26b%3Dc=d&n=1000000",
    "key=x%22%7D%201%0Aevil_total%7Ba=%22b%1B%5D0;t%07%0D%0Alevel=error",
    "key=%00&a=%7F&b=%C2%80",
    "n=1",
    "key=a&a0=v&a1=v&a2=v&a3=v&a4=v&a5=v&a6=v&a7=v&a8=v&a9=v",
];
const WORDS: [&[u8]; 12] = [
    b"&key=",
    b"&n=",
    b"%FF",
    b"%",
    b"%0",
    b"%00",
    b"%C3",
    b"&",
    b"=",
    b"+",
    b"%26",
    "\u{202e}東".as_bytes(),
];

fn is_sound(query: &Query<'_>) {
    let pairs = query.pairs();
    assert!((1..=MAX_ATTRIBUTES).contains(&pairs.len()));
    assert!(pairs.iter().all(|(name, value)| !name.is_empty()
        && name.len() <= MAX_NAME_BYTES
        && value.len() <= MAX_VALUE_BYTES));
    assert!(pairs.iter().any(|(name, value)| *name == "key" && !value.is_empty()));
    assert_eq!(pairs.iter().map(|(name, _)| name).collect::<HashSet<_>>().len(), pairs.len());
    assert!(query.cost.is_none_or(|cost| cost <= MAX_COST));
}

#[test]
fn no_query_makes_the_front_panic() {
    let corpus = CORPUS.map(|query| query.as_bytes().to_vec()).to_vec();
    let ran = headworks_fuzz::run("query of /allow", corpus, &WORDS, |input| {
        let text = String::from_utf8_lossy(input);
        match Query::parse(&text) {
            Ok(query) => {
                is_sound(&query);
                format!("{} {}", query.pairs().len(), query.cost.is_some())
            }
            Err(error) => error.to_string().chars().take(30).collect(),
        }
    });
    assert!(ran.inputs > 1000 && ran.kinds > 10, "{ran:?}");
}
