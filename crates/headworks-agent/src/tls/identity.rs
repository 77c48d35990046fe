//! Who a peer is, by its certificate.

use headworks_core::message::Tier;
use rustls::pki_types::CertificateDer;

use super::certificate::Facts;

const TIERS: [Tier; 3] = [Tier::Agent, Tier::Aggregator, Tier::Controller];

/// The roles that a certificate gives its holder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identities(Vec<Identity>);

/// One role, for one node if it names one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Identity {
    tier: Tier,
    node: Option<String>,
}

impl Identities {
    /// Those of the holder of this chain, whose first certificate is its own. One that cannot be read gives no role.
    pub(super) fn of(chain: &[CertificateDer<'_>]) -> Self {
        let facts = chain.first().and_then(|leaf| Facts::read(leaf).ok());
        Self::from_uris(facts.iter().flat_map(|facts| &facts.uris).map(String::as_str))
    }

    pub(super) fn from_uris<'a>(uris: impl Iterator<Item = &'a str>) -> Self {
        Self(uris.filter_map(parse).collect())
    }

    /// Whether it gives one of these roles, to whatever node.
    pub(super) fn include(&self, tiers: &[Tier]) -> bool {
        self.0.iter().any(|identity| tiers.contains(&identity.tier))
    }

    /// The roles, as errors tell them.
    pub(super) fn roles(&self) -> String {
        let roles: Vec<&str> = self.0.iter().map(|identity| identity.tier.name()).collect();
        if roles.is_empty() { "no role".to_owned() } else { format!("the role {}", roles.join(" and ")) }
    }

    /// Whether its holder may stand in the tree as this node of this tier; if not, why, for both sides.
    pub fn admit(&self, tier: Tier, node: &str) -> Result<(), String> {
        let mut of_tier = self.0.iter().filter(|identity| identity.tier == tier).peekable();
        let name = tier.name();
        if of_tier.peek().is_none() {
            return Err(format!(
                "the certificate gives {}, not {name}; it needs the URI spiffe://TRUST-DOMAIN/headworks/{name}",
                self.roles()
            ));
        }
        if of_tier.all(|identity| identity.node.as_deref().is_some_and(|named| named != node)) {
            return Err(format!(
                "the certificate is for another {name} than {node:?}; give it, or change --id"
            ));
        }
        Ok(())
    }
}

/// `spiffe://TRUST-DOMAIN/headworks/ROLE[/NAME]`; everything else is for other programs.
fn parse(uri: &str) -> Option<Identity> {
    let (domain, path) = uri.strip_prefix("spiffe://")?.split_once('/')?;
    let mut parts = path.splitn(3, '/');
    if domain.is_empty() || parts.next()? != "headworks" {
        return None;
    }
    let role = parts.next()?;
    let tier = TIERS.into_iter().find(|tier| tier.name() == role)?;
    match parts.next() {
        // An empty name is a mistake, and must not become a name for everybody.
        Some("") => None,
        node => Some(Identity { tier, node: node.map(str::to_owned) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identities(uris: &[&str]) -> Identities {
        Identities::from_uris(uris.iter().copied())
    }

    #[test]
    fn a_role_without_a_name_is_for_every_node_of_the_tier() {
        let agents = identities(&["spiffe://headworks.local/headworks/agent"]);
        assert_eq!(agents.admit(Tier::Agent, "a1"), Ok(()));
        let error = agents.admit(Tier::Aggregator, "a1").unwrap_err();
        assert!(error.contains("the role agent, not aggregator"), "{error}");
    }

    #[test]
    fn a_name_is_for_one_node() {
        let one = identities(&["spiffe://d/headworks/agent/a1", "spiffe://d/headworks/agent/a2"]);
        assert!(one.admit(Tier::Agent, "a1").is_ok() && one.admit(Tier::Agent, "a2").is_ok());
        assert!(one.admit(Tier::Agent, "a3").unwrap_err().contains("another agent than \"a3\""));
    }

    #[test]
    fn several_roles_count_each_by_itself() {
        let both = identities(&["spiffe://d/headworks/agent", "spiffe://d/headworks/aggregator/z"]);
        assert!(both.admit(Tier::Agent, "any").is_ok() && both.admit(Tier::Aggregator, "any").is_err());
        assert!(both.include(&[Tier::Aggregator, Tier::Controller]) && !both.include(&[Tier::Controller]));
    }

    #[test]
    fn what_is_not_quite_an_identity_gives_no_role() {
        let uris = [
            "spiffe:///headworks/agent",
            "spiffe://d/other/agent",
            "spiffe://d/headworks",
            "spiffe://d/headworks/agents",
            "spiffe://d/headworks/agent/",
            "https://d/headworks/agent",
            "",
        ];
        assert_eq!(identities(&uris), Identities::default());
    }
}
