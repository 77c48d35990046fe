//! The configuration of a filter: what Envoy hands over, checked. An error says what is wrong, where, and what to do.

use std::fmt::Display;
use std::path::PathBuf;
use std::time::Duration;

use headworks_agent::HOLD;
use headworks_agent::settings::{self, is_on_this_machine};
use headworks_agent::tls::TlsFiles;
use headworks_core::duration;
use serde::Deserialize;

use crate::attributes::{Attribute, MAX_ATTRIBUTES};

/// More is no configuration of a filter, but a mistake.
const MAX_BYTES: usize = 256 * 1024;
/// So many parents are tried in turn; more are a list that went wrong.
const MAX_PARENTS: usize = 64;

/// What one filter is to do.
#[derive(Debug)]
pub struct Config {
    /// How the agent behind it is connected.
    pub connection: Connection,
    /// What is told to the limiter of each request.
    pub attributes: Vec<Attribute>,
}

/// How an agent is connected. Filters that say the same share one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Its name, if it was given one.
    pub id: Option<String>,
    /// Its zone.
    pub zone: String,
    /// The region of the zone; empty for none.
    pub region: String,
    /// The aggregators of the zone.
    pub aggregators: Vec<String>,
    /// How long the last drop ratios stay while nothing is heard.
    pub hold: Duration,
    /// Where limits and ratios are kept for the next start.
    pub state_dir: Option<PathBuf>,
    /// Credentials.
    pub tls: Option<TlsFiles>,
}

/// What is wrong with a configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// There is none.
    #[error(
        "filter_config is missing: give a google.protobuf.Struct with at least `zone`, `aggregators` and `attributes`"
    )]
    Missing,
    /// It is far too long.
    #[error(
        "filter_config has more than {MAX_BYTES} bytes: name the attributes that limits match on, and no more"
    )]
    TooLong,
    /// A key or a value does not fit.
    #[error("filter_config, at `{path}`: {fault}")]
    Field {
        /// The way to it.
        path: String,
        /// What is wrong, and what to do.
        fault: String,
    },
    /// What differs from host to host was told neither here nor there.
    #[error("filter_config has no `{key}`: give it there, or as {variable} in Envoy's environment")]
    Untold {
        /// The key.
        key: &'static str,
        /// The variable.
        variable: &'static str,
    },
}

/// As it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    id: Option<Name>,
    zone: Option<Name>,
    region: Option<Region>,
    aggregators: Option<Vec<ParentUrl>>,
    hold: Option<Time>,
    state_dir: Option<PathBuf>,
    tls: Option<Files>,
    #[serde(default)]
    allow_plaintext: bool,
    attributes: Vec<Attribute>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Files {
    cert: PathBuf,
    key: PathBuf,
    ca: PathBuf,
}

/// Texts that are checked where they stand, so that an error names the place.
macro_rules! checked {
    ($name:ident, $of:ty, $check:expr) => {
        #[derive(Deserialize)]
        #[serde(try_from = "String")]
        struct $name($of);

        impl TryFrom<String> for $name {
            type Error = String;

            fn try_from(text: String) -> Result<Self, String> {
                $check(&text).map(Self)
            }
        }
    };
}
checked!(Name, String, settings::name);
checked!(Region, String, settings::region);
checked!(ParentUrl, String, settings::parent_url);
checked!(Time, Duration, duration::parse);

impl Config {
    /// Reads a configuration. What differs from host to host may be told by variables in its place, as to every agent: one
    /// configuration then does for a whole mesh.
    pub fn parse(bytes: &[u8], variable: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        if bytes.trim_ascii().is_empty() {
            return Err(ConfigError::Missing);
        }
        if bytes.len() > MAX_BYTES {
            return Err(ConfigError::TooLong);
        }
        let mut json = serde_json::Deserializer::from_slice(bytes);
        let written: Written = serde_path_to_error::deserialize(&mut json)
            .map_err(|error| field(&error.path().to_string(), error.inner()))?;
        json.end().map_err(|error| field(".", error))?;
        written.check(variable)
    }
}

impl Written {
    fn check(self, variable: impl Fn(&str) -> Option<String>) -> Result<Config, ConfigError> {
        check_attributes(&self.attributes)?;
        let variable = |name: &str| variable(name).filter(|text| !text.is_empty());
        let told = |key, name: &'static str, check: fn(&str) -> Result<String, String>| match variable(name) {
            None => Ok(None),
            Some(text) => {
                check(&text).map(Some).map_err(|advice| field(&format!("{key}, from {name}"), advice))
            }
        };
        let id = match self.id {
            Some(Name(id)) => Some(id),
            None => told("id", "HEADWORKS_ID", settings::name)?,
        };
        let zone = match self.zone {
            Some(Name(zone)) => Some(zone),
            None => told("zone", "HEADWORKS_ZONE", settings::name)?,
        };
        let region = match self.region {
            Some(Region(region)) => region,
            None => told("region", "HEADWORKS_REGION", settings::region)?.unwrap_or_default(),
        };
        let aggregators = match self.aggregators {
            Some(urls) => urls.into_iter().map(|ParentUrl(url)| url).collect(),
            None => aggregators_from(variable("HEADWORKS_AGGREGATORS"))?,
        };
        let tls = self.tls.map(|Files { cert, key, ca }| TlsFiles { cert, key, ca });
        check_parents(&aggregators, tls.is_some(), self.allow_plaintext)?;
        if self.state_dir.is_some() && id.is_none() {
            return Err(field(
                "state_dir",
                "the file is named after the agent: give it an `id` that survives a restart",
            ));
        }
        let zone = zone.ok_or(ConfigError::Untold { key: "zone", variable: "HEADWORKS_ZONE" })?;
        let hold = self.hold.map_or(HOLD, |Time(hold)| hold);
        let connection = Connection { id, zone, region, aggregators, hold, state_dir: self.state_dir, tls };
        Ok(Config { connection, attributes: self.attributes })
    }
}

fn field(path: &str, fault: impl Display) -> ConfigError {
    ConfigError::Field { path: path.to_owned(), fault: fault.to_string() }
}

fn check_attributes(attributes: &[Attribute]) -> Result<(), ConfigError> {
    if attributes.len() > MAX_ATTRIBUTES {
        return Err(field(
            "attributes",
            format!("more than {MAX_ATTRIBUTES}: name those that limits match on"),
        ));
    }
    for (place, attribute) in attributes.iter().enumerate() {
        if attributes[..place].iter().any(|earlier| earlier.name() == attribute.name()) {
            let fault = format!("`{}` is given twice: give each attribute once", attribute.name());
            return Err(field(&format!("attributes[{place}].name"), fault));
        }
    }
    Ok(())
}

fn aggregators_from(list: Option<String>) -> Result<Vec<String>, ConfigError> {
    let list = list.ok_or(ConfigError::Untold { key: "aggregators", variable: "HEADWORKS_AGGREGATORS" })?;
    let check = |url| {
        settings::parent_url(url).map_err(|advice| field("aggregators, from HEADWORKS_AGGREGATORS", advice))
    };
    list.split(',').map(check).collect()
}

/// Who sits between could tell this Envoy what to drop.
fn check_parents(urls: &[String], has_tls: bool, plaintext_allowed: bool) -> Result<(), ConfigError> {
    if urls.is_empty() || urls.len() > MAX_PARENTS {
        return Err(field(
            "aggregators",
            format!("give the URLs of 1 to {MAX_PARENTS} aggregators of the zone"),
        ));
    }
    for (place, url) in urls.iter().enumerate() {
        let here = url.parse().is_ok_and(|uri| is_on_this_machine(&uri));
        let fault = match url.starts_with("https:") {
            true if !has_tls => format!("{url} needs credentials: give `tls` with `cert`, `key` and `ca`"),
            false if !here && !plaintext_allowed => format!(
                "{url} is on another machine, and http:// is plain text: write https:// and give `tls`, or `allow_plaintext: true` if \
                 every machine on the network is trusted"
            ),
            _ => continue,
        };
        return Err(field(&format!("aggregators[{place}]"), fault));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, ConfigError> {
        Config::parse(text.as_bytes(), |_| None)
    }

    fn error(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    const LEAST: &str = r#"{"zone": "a", "aggregators": ["http://127.0.0.1:7100"], "attributes": []}"#;

    #[test]
    fn takes_what_must_be_told_and_fills_in_the_rest() {
        let connection = parse(LEAST).unwrap().connection;
        assert_eq!((connection.zone.as_str(), connection.region.as_str()), ("a", ""));
        assert_eq!((connection.id, connection.hold), (None, Duration::from_secs(60)));
    }

    #[test]
    fn takes_all_that_an_agent_can_be_told() {
        let text = r#"{"id": "envoy-7", "zone": "a", "region": "eu", "aggregators": ["http://agg:7100", "http://[::1]:7100"], "hold": "5m",
            "state_dir": "/var/lib/headworks", "allow_plaintext": true, "attributes": [{"name": "service", "from": {"constant": "checkout"}}]}"#;
        let Config { connection, attributes } = parse(text).unwrap();
        assert_eq!((connection.id.as_deref(), connection.region.as_str()), (Some("envoy-7"), "eu"));
        assert_eq!((connection.hold, connection.aggregators.len()), (Duration::from_secs(300), 2));
        assert_eq!(attributes[0].name(), "service");
    }

    #[test]
    fn what_differs_from_host_to_host_may_come_from_the_environment() {
        let variable = |name: &str| match name {
            "HEADWORKS_ZONE" => Some("b".to_owned()),
            "HEADWORKS_AGGREGATORS" => Some("http://127.0.0.1:1,http://localhost:2".to_owned()),
            "HEADWORKS_REGION" => Some(String::new()),
            _ => None,
        };
        let connection = Config::parse(br#"{"attributes": []}"#, variable).unwrap().connection;
        assert_eq!((connection.zone.as_str(), connection.aggregators.len()), ("b", 2));
        let told = Config::parse(LEAST.as_bytes(), variable).unwrap().connection;
        assert_eq!(told.zone, "a", "what is written goes first");
        let error =
            Config::parse(br#"{"attributes": []}"#, |_| Some("\n".to_owned())).unwrap_err().to_string();
        assert!(error.contains("HEADWORKS_ID"), "{error}");
    }

    #[test]
    fn an_error_says_what_where_and_what_to_do() {
        let with = |more: &str| LEAST.replacen('{', &format!("{{{more}, "), 1);
        for (text, parts) in [
            (String::new(), ["filter_config is missing", "`attributes`"]),
            ("{}".to_owned(), ["`.`", "missing field `attributes`"]),
            (r#"{"attributes": []}"#.to_owned(), ["no `aggregators`", "HEADWORKS_AGGREGATORS"]),
            (LEAST.replace(r#""zone": "a", "#, ""), ["no `zone`", "HEADWORKS_ZONE"]),
            (LEAST.replace("zone", "zones"), ["`zones`", "expected one of"]),
            (LEAST.replace(r#""a""#, r#""""#), ["`zone`", "write a name"]),
            (LEAST.replace("http:", "ftp:"), ["`aggregators[0]`", "http://host:port"]),
            (LEAST.replace("127.0.0.1", "agg"), ["`aggregators[0]`", "allow_plaintext"]),
            (LEAST.replace("http:", "https:"), ["`aggregators[0]`", "`cert`, `key` and `ca`"]),
            (LEAST.replace(r#"["http://127.0.0.1:7100"]"#, "[]"), ["`aggregators`", "1 to 64"]),
            (with(r#""hold": "1 day""#), ["`hold`", "such as 30s"]),
            (with(r#""state_dir": "/x""#), ["`state_dir`", "give it an `id`"]),
            (with(r#""tls": {"cert": "/c.crt", "key": "/c.key"}"#), ["`tls`", "missing field `ca`"]),
            (format!("{LEAST} {{}}"), ["`.`", "trailing characters"]),
            ("x".repeat(MAX_BYTES + 1), ["more than", "no more"]),
        ] {
            let error = error(&text);
            assert!(parts.iter().all(|part| error.contains(part)), "{text:.200}\n{error}");
        }
    }

    #[test]
    fn attributes_are_few_and_each_is_given_once() {
        let with = |list: &str| LEAST.replace("[]", &format!("[{list}]"));
        let twice = r#"{"name": "a", "from": "method"}, {"name": "a", "from": "route"}"#;
        let message = error(&with(twice));
        assert!(
            message.contains("attributes[1].name") && message.contains("`a` is given twice"),
            "{message}"
        );
        let many: Vec<_> = (0..33).map(|n| format!(r#"{{"name": "a{n}", "from": "method"}}"#)).collect();
        let message = error(&with(&many.join(",")));
        assert!(message.contains("more than 32"), "{message}");
        let message = error(&with(r#"{"name": "a", "from": "mehtod"}"#));
        assert!(message.contains("attributes[0].from") && message.contains("peer_identity"), "{message}");
    }
}
