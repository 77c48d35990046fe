//! From a request to the attributes that limits match on. Pure: a request is whatever can be asked for its parts.

use serde::Deserialize;
use smallvec::SmallVec;

/// The most attributes of one request: a decision looks at each.
pub const MAX_ATTRIBUTES: usize = 32;
/// The longest name; names are written by programmers and stay short.
const MAX_NAME_BYTES: usize = 128;
/// The longest value; every distinct one may cost a bucket that holds it, on each tier.
const MAX_VALUE_BYTES: usize = 1024;

/// What a request can be asked for. Values are whatever bytes came.
pub trait Request {
    /// The first value of a header, or of `:path`, `:method` and their kin.
    fn header(&self, name: &str) -> Option<&[u8]>;
    /// The name of the route that it takes, if that has one.
    fn route(&self) -> Option<&[u8]>;
    /// The cluster that it is routed to.
    fn cluster(&self) -> Option<&[u8]>;
    /// Who the client is by its certificate: the first URI in it, else the first DNS name. Nothing without TLS on both sides.
    fn peer_identity(&self) -> Option<&[u8]>;
}

/// One attribute, and what it is made of.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attribute {
    name: AttributeName,
    from: Source,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
struct AttributeName(String);

/// Where a value comes from.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Source {
    /// Always this.
    Constant(Value),
    /// A header, by its name in lower case.
    Header(HeaderName),
    /// The longest of these beginnings that the path has.
    PathPrefix(Vec<Prefix>),
    Method,
    Route,
    Cluster,
    PeerIdentity,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
struct Value(String);

#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
struct HeaderName(String);

#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
struct Prefix(String);

impl TryFrom<String> for AttributeName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let is_sound = (1..=MAX_NAME_BYTES).contains(&text.len());
        is_sound.then_some(Self(text)).ok_or_else(|| format!("write a name of 1 to {MAX_NAME_BYTES} bytes"))
    }
}

impl TryFrom<String> for Value {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let is_short = text.len() <= MAX_VALUE_BYTES;
        is_short
            .then_some(Self(text))
            .ok_or_else(|| format!("write a value of at most {MAX_VALUE_BYTES} bytes"))
    }
}

impl TryFrom<String> for HeaderName {
    type Error = String;

    /// Envoy has all names in lower case.
    fn try_from(text: String) -> Result<Self, String> {
        let bare = text.strip_prefix(':').unwrap_or(&text);
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if bare.is_empty() || text.len() > MAX_NAME_BYTES || !bare.bytes().all(fits) {
            return Err(format!(
                "{text:?} is no name of a header: write one such as x-caller, or :authority"
            ));
        }
        Ok(Self(text.to_ascii_lowercase()))
    }
}

impl TryFrom<String> for Prefix {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let is_sound = text.starts_with('/') && text.len() <= MAX_VALUE_BYTES && !text.contains(['?', '#']);
        is_sound.then_some(Self(text)).ok_or_else(|| {
            format!("write the beginning of a path, from its first / on, in at most {MAX_VALUE_BYTES} bytes, such as /api")
        })
    }
}

impl Prefix {
    /// Whether a path begins with it, up to the end of a segment: `/api` is no beginning of `/apiary`.
    fn is_of(&self, path: &str) -> bool {
        let rest = path.strip_prefix(self.0.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || self.0.ends_with('/'))
    }
}

/// Why a value that is there counts as absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// Its bytes are no text.
    NotUtf8,
    /// It is longer than a value may be.
    TooLong,
}

/// Name and value of each attribute that a request has.
pub type Pairs<'r> = SmallVec<[(&'r str, &'r str); 8]>;

impl Attribute {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name.0
    }

    fn value<'r>(&'r self, request: &'r impl Request) -> Result<Option<&'r str>, Unusable> {
        match &self.from {
            Source::Constant(value) => Ok(Some(&value.0)),
            Source::Header(name) => text(request.header(&name.0)),
            Source::PathPrefix(prefixes) => Ok(prefix(prefixes, path(request)?)),
            Source::Method => text(request.header(":method")),
            Source::Route => text(request.route()),
            Source::Cluster => text(request.cluster()),
            Source::PeerIdentity => text(request.peer_identity()),
        }
    }
}

/// The attributes of a request, in the order in which they are configured. `unusable` hears of values that are there and cannot be used.
pub fn of<'r>(
    attributes: &'r [Attribute],
    request: &'r impl Request,
    mut unusable: impl FnMut(Unusable),
) -> Pairs<'r> {
    let mut pairs = Pairs::new();
    for attribute in attributes {
        match attribute.value(request) {
            Ok(None) => {}
            Ok(Some(value)) => pairs.push((attribute.name(), value)),
            Err(why) => unusable(why),
        }
    }
    pairs
}

/// Limits compare text, and hold what they compare. What is empty counts as absent, as wherever proxies ask an agent.
fn text(value: Option<&[u8]>) -> Result<Option<&str>, Unusable> {
    let Some(bytes) = value.filter(|bytes| !bytes.is_empty()) else { return Ok(None) };
    if bytes.len() > MAX_VALUE_BYTES {
        return Err(Unusable::TooLong);
    }
    std::str::from_utf8(bytes).map(Some).map_err(|_| Unusable::NotUtf8)
}

/// The path without its query. It may be as long as it likes: only what it begins with is kept.
fn path(request: &impl Request) -> Result<&str, Unusable> {
    let bytes = request.header(":path").unwrap_or_default();
    let end = bytes.iter().position(|byte| matches!(byte, b'?' | b'#')).unwrap_or(bytes.len());
    std::str::from_utf8(&bytes[..end]).map_err(|_| Unusable::NotUtf8)
}

fn prefix<'p>(prefixes: &'p [Prefix], path: &str) -> Option<&'p str> {
    let longest = prefixes.iter().filter(|prefix| prefix.is_of(path)).max_by_key(|prefix| prefix.0.len());
    longest.map(|prefix| prefix.0.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request with these headers, and nothing else known of it.
    struct Headers<'h>(&'h [(&'h str, &'h [u8])]);

    impl Request for Headers<'_> {
        fn header(&self, name: &str) -> Option<&[u8]> {
            self.0.iter().find(|(key, _)| *key == name).map(|(_, value)| *value)
        }

        fn route(&self) -> Option<&[u8]> {
            Some(b"pay")
        }

        fn cluster(&self) -> Option<&[u8]> {
            None
        }

        fn peer_identity(&self) -> Option<&[u8]> {
            Some(b"spiffe://shop/web")
        }
    }

    fn configured(json: &str) -> Vec<Attribute> {
        serde_json::from_str(json).unwrap()
    }

    fn pairs_of(json: &str, headers: &[(&str, &[u8])]) -> (Vec<(String, String)>, Vec<Unusable>) {
        let (attributes, request) = (configured(json), Headers(headers));
        let mut unusable = Vec::new();
        let pairs = of(&attributes, &request, |why| unusable.push(why));
        (pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(), unusable)
    }

    fn value_of(from: &str, headers: &[(&str, &[u8])]) -> Option<String> {
        let (pairs, _) = pairs_of(&format!(r#"[{{"name": "a", "from": {from}}}]"#), headers);
        pairs.into_iter().next().map(|(_, value)| value)
    }

    #[test]
    fn each_source_gives_what_it_names() {
        let headers: &[(&str, &[u8])] = &[(":method", b"GET"), ("x-caller", b"web"), ("x-empty", b"")];
        assert_eq!(value_of(r#"{"constant": "checkout"}"#, headers).as_deref(), Some("checkout"));
        assert_eq!(value_of(r#"{"header": "X-Caller"}"#, headers).as_deref(), Some("web"));
        assert_eq!(value_of(r#"{"header": "x-empty"}"#, headers), None);
        assert_eq!(value_of(r#"{"header": "x-none"}"#, headers), None);
        assert_eq!(value_of(r#""method""#, headers).as_deref(), Some("GET"));
        assert_eq!(value_of(r#""route""#, headers).as_deref(), Some("pay"));
        assert_eq!(value_of(r#""cluster""#, headers), None);
        assert_eq!(value_of(r#""peer_identity""#, headers).as_deref(), Some("spiffe://shop/web"));
    }

    #[test]
    fn the_longest_beginning_of_the_path_counts_whatever_the_query_says() {
        let value = |path: &str| {
            value_of(r#"{"path_prefix": ["/api", "/api/v1", "/static/"]}"#, &[(":path", path.as_bytes())])
        };
        assert_eq!(value("/api").as_deref(), Some("/api"));
        assert_eq!(value("/api/v1/pay?x=/static/").as_deref(), Some("/api/v1"));
        assert_eq!(value("/api?/api/v1").as_deref(), Some("/api"));
        assert_eq!(value("/static/logo.png").as_deref(), Some("/static/"));
        assert_eq!((value("/apiary"), value("/static"), value("")), (None, None, None));
        assert_eq!(value(&format!("/api/{}", "x".repeat(5000))).as_deref(), Some("/api"));
    }

    #[test]
    fn what_is_no_text_or_too_long_counts_as_absent_and_is_told() {
        let json = r#"[{"name": "a", "from": {"header": "a"}}, {"name": "b", "from": {"header": "b"}}, {"name": "c", "from": {"header": "c"}}]"#;
        let long = [b'x'; MAX_VALUE_BYTES + 1];
        let (pairs, unusable) = pairs_of(json, &[("a", b"\xff"), ("b", &long), ("c", &long[1..])]);
        assert_eq!(pairs.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["c"]);
        assert_eq!(unusable, [Unusable::NotUtf8, Unusable::TooLong]);
    }

    #[test]
    fn refuses_what_cannot_be_meant() {
        let long = "x".repeat(1025);
        for (entry, part) in [
            (r#"{"name": "", "from": "method"}"#.to_owned(), "write a name"),
            (r#"{"name": "a", "from": {"header": "x caller"}}"#.to_owned(), "no name of a header"),
            (r#"{"name": "a", "from": {"header": ""}}"#.to_owned(), "no name of a header"),
            (r#"{"name": "a", "from": {"path_prefix": ["api"]}}"#.to_owned(), "from its first / on"),
            (r#"{"name": "a", "from": {"path_prefix": ["/a?b"]}}"#.to_owned(), "from its first / on"),
            (format!(r#"{{"name": "a", "from": {{"constant": "{long}"}}}}"#), "at most 1024"),
            (r#"{"name": "a", "from": {"cookie": "b"}}"#.to_owned(), "expected one of"),
            (r#"{"name": "a"}"#.to_owned(), "missing field `from`"),
            (r#"{"name": "a", "from": "method", "default": "b"}"#.to_owned(), "unknown field `default`"),
        ] {
            let error = serde_json::from_str::<Attribute>(&entry).unwrap_err().to_string();
            assert!(error.contains(part), "{entry:.100}: {error}");
        }
    }
}
