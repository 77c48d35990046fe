//! Attributes: the key–value pairs that describe a request.

/// What is known of one request, borrowed from its caller: `service=checkout`, `caller=web`.
///
/// Keys are looked up in the order given; the fronts refuse requests that name a key twice.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a>(&'a [(&'a str, &'a str)]);

impl<'a> Attributes<'a> {
    /// The attributes of a request.
    pub fn new(pairs: &'a [(&'a str, &'a str)]) -> Self {
        Self(pairs)
    }

    /// Key and value of each, in the order of the request.
    #[inline]
    pub fn iter(self) -> impl ExactSizeIterator<Item = (&'a str, &'a str)> {
        self.0.iter().copied()
    }

    /// The value at a place, in the order of the request.
    #[inline]
    pub fn at(self, place: usize) -> Option<&'a str> {
        self.0.get(place).map(|(_, value)| *value)
    }

    /// The value of `key`, if the request has it.
    #[inline]
    pub fn get(self, key: &str) -> Option<&'a str> {
        self.0.iter().find(|(k, _)| *k == key).map(|(_, v)| *v)
    }
}
