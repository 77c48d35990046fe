use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use headworks_core::message::Tier;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, SanType};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};
use tokio_rustls::TlsConnector;

use super::watched::Seen;
use super::*;

const DAY: Duration = Duration::from_secs(86_400);
const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// An authority, and what it signs.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// What a certificate of a test says.
struct Wanted<'a> {
    uri: &'a str,
    host: &'a str,
    from: SystemTime,
    until: SystemTime,
}

impl<'a> Wanted<'a> {
    fn new(uri: &'a str) -> Self {
        let now = SystemTime::now();
        Self { uri, host: "localhost", from: now - DAY, until: now + DAY }
    }
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// Writes a certificate, its key and the authority into a folder.
    fn write(&self, folder: &Path, wanted: &Wanted<'_>) -> TlsFiles {
        let mut params = CertificateParams::new(vec![wanted.host.to_owned()]).unwrap();
        params.subject_alt_names.push(SanType::URI(wanted.uri.try_into().unwrap()));
        (params.not_before, params.not_after) = (wanted.from.into(), wanted.until.into());
        let key = KeyPair::generate().unwrap();
        let files =
            TlsFiles { cert: folder.join("tls.crt"), key: folder.join("tls.key"), ca: folder.join("ca.crt") };
        fs::write(&files.cert, params.signed_by(&key, &self.issuer).unwrap().pem()).unwrap();
        fs::write(&files.key, key.serialize_pem()).unwrap();
        fs::write(&files.ca, &self.pem).unwrap();
        files
    }
}

/// Credentials with a folder of their own.
struct Node {
    files: TlsFiles,
    tls: Tls,
    _folder: TempDir,
}

fn node(authority: &Authority, uri: &str) -> Node {
    let folder = tempfile::tempdir().unwrap();
    let files = authority.write(folder.path(), &Wanted::new(uri));
    Node { tls: Tls::load(files.clone()).unwrap(), files, _folder: folder }
}

const AGENT: &str = "spiffe://headworks.local/headworks/agent";
const AGGREGATOR: &str = "spiffe://headworks.local/headworks/aggregator";
const PARENTS: &[Tier] = &[Tier::Aggregator, Tier::Controller];

/// Both sides of a handshake; what the child learns, and whom the parent lets in.
async fn meet(
    parent: &Tls,
    child: ClientConfig,
    name: &'static str,
) -> (Option<Refusal>, Option<Identities>) {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let serve = async {
        let (mut stream, identities) = parent.accept_child(far, PEER).await?;
        stream.write_all(b"settings").await.ok()?;
        Some(identities)
    };
    let dial = async {
        let name = ServerName::try_from(name).unwrap();
        let mut stream = match TlsConnector::from(Arc::new(child)).connect(name, near).await {
            Ok(stream) => stream,
            Err(error) => return Refusal::of(&error),
        };
        stream.fill_buf().await.err().as_ref().and_then(Refusal::of)
    };
    tokio::join!(dial, serve)
}

fn refused(tls: &Tls, cause: Cause) -> u64 {
    tls.status().refused.into_iter().find(|(other, _)| *other == cause).map_or(0, |(_, count)| count)
}

#[tokio::test]
async fn two_of_one_authority_meet_and_the_parent_knows_the_child() {
    let authority = Authority::new();
    let (parent, child) = (node(&authority, AGGREGATOR), node(&authority, AGENT));
    let (refusal, identities) = meet(&parent.tls, child.tls.client(PARENTS).unwrap(), "localhost").await;
    assert!(refusal.is_none(), "{refusal:?}");
    assert_eq!(identities.unwrap().admit(Tier::Agent, "any"), Ok(()));
    assert!(child.tls.has_role(Tier::Agent) && !child.tls.has_role(Tier::Controller));
}

#[tokio::test]
async fn a_child_of_another_authority_is_refused_and_told_why() {
    let authority = Authority::new();
    let (parent, child) = (node(&authority, AGGREGATOR), node(&Authority::new(), AGENT));
    // It trusts the parent, so only the parent refuses.
    fs::copy(&parent.files.ca, &child.files.ca).unwrap();
    let child = Tls::load(child.files.clone()).unwrap();
    let (refusal, identities) = meet(&parent.tls, child.client(PARENTS).unwrap(), "localhost").await;
    let refusal = refusal.unwrap();
    assert_eq!(refusal.cause, Cause::RefusedByPeer);
    assert!(refusal.text.contains("not in the peer's --tls-ca"), "{refusal}");
    assert!(identities.is_none());
    assert_eq!(refused(&parent.tls, Cause::UnknownCa), 1);
}

#[tokio::test]
async fn a_child_without_a_certificate_is_refused_and_told_why() {
    let authority = Authority::new();
    let (parent, child) = (node(&authority, AGGREGATOR), node(&authority, AGENT));
    let mut bare = child.tls.client(PARENTS).unwrap();
    bare.client_auth_cert_resolver = Arc::new(NoCertificate);
    let (refusal, _) = meet(&parent.tls, bare, "localhost").await;
    assert!(refusal.unwrap().text.contains("it wants a certificate"));
    assert_eq!(refused(&parent.tls, Cause::NoCertificate), 1);
}

#[derive(Debug)]
struct NoCertificate;

impl rustls::client::ResolvesClientCert for NoCertificate {
    fn resolve(&self, _: &[&[u8]], _: &[rustls::SignatureScheme]) -> Option<Arc<rustls::sign::CertifiedKey>> {
        None
    }

    fn has_certs(&self) -> bool {
        false
    }
}

#[tokio::test]
async fn a_child_refuses_a_parent_of_another_name_or_role() {
    let authority = Authority::new();
    let (parent, child) = (node(&authority, AGGREGATOR), node(&authority, AGENT));
    let (refusal, _) = meet(&parent.tls, child.tls.client(PARENTS).unwrap(), "elsewhere").await;
    assert_eq!(refusal.unwrap().cause, Cause::WrongName);
    let (refusal, _) = meet(&parent.tls, child.tls.client(&[Tier::Controller]).unwrap(), "localhost").await;
    let refusal = refusal.unwrap();
    assert_eq!(refusal.cause, Cause::WrongRole);
    assert!(refusal.text.contains("gives the role aggregator, but controller is needed"), "{refusal}");
    assert_eq!(refused(&parent.tls, Cause::RefusedByPeer), 2);
}

#[tokio::test]
async fn credentials_that_ran_out_while_in_force_are_refused() {
    let authority = Authority::new();
    let parent = node(&authority, AGGREGATOR);
    let folder = tempfile::tempdir().unwrap();
    let now = SystemTime::now();
    let wanted = Wanted { until: now + Duration::from_secs(2), ..Wanted::new(AGENT) };
    let child = Tls::load(authority.write(folder.path(), &wanted)).unwrap();
    tokio::time::sleep(Duration::from_secs(4)).await;
    let (refusal, _) = meet(&parent.tls, child.client(PARENTS).unwrap(), "localhost").await;
    assert!(refusal.unwrap().text.contains("not valid now"));
    assert_eq!(refused(&parent.tls, Cause::Expired), 1);
}

#[tokio::test]
async fn what_speaks_no_tls_is_told_from_a_bad_certificate() {
    let parent = node(&Authority::new(), AGGREGATOR);
    let (mut near, far) = tokio::io::duplex(64 * 1024);
    near.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    assert!(parent.tls.accept_child(far, PEER).await.is_none());
    assert_eq!(refused(&parent.tls, Cause::NotTls), 1);
}

/// What loading says after these files have been spoilt.
fn fault(spoil: impl FnOnce(&TlsFiles)) -> String {
    let node = node(&Authority::new(), AGENT);
    spoil(&node.files);
    Tls::load(node.files).unwrap_err().to_string()
}

#[test]
fn every_fault_is_told_with_its_file_and_a_way_out() {
    let missing = fault(|files| fs::remove_file(&files.key).unwrap());
    assert!(missing.contains("cannot read the key") && missing.contains("tls.key"), "{missing}");
    let empty = fault(|files| fs::write(&files.cert, "\n").unwrap());
    assert!(empty.contains("the certificate") && empty.contains("tls.crt is empty"), "{empty}");
    let other = fault(|files| fs::write(&files.ca, "dear authority").unwrap());
    assert!(other.contains("ca.crt holds no certificate"), "{other}");
    let swapped = fault(|files| assert!(fs::copy(&files.cert, &files.key).is_ok()));
    assert!(swapped.contains("tls.key holds no private key"), "{swapped}");
    let folder = fault(|files| {
        fs::remove_file(&files.ca).unwrap();
        fs::create_dir(&files.ca).unwrap();
    });
    assert!(folder.contains("ca.crt: it is no file"), "{folder}");
    let large = fault(|files| fs::write(&files.ca, vec![b'x'; 2 << 20]).unwrap());
    assert!(large.contains("ca.crt is larger than 1 MiB"), "{large}");
    let stranger =
        fault(|files| fs::write(&files.key, KeyPair::generate().unwrap().serialize_pem()).unwrap());
    assert!(stranger.contains("tls.key belongs to another certificate than"), "{stranger}");
}

#[test]
fn certificates_out_of_their_time_are_refused_at_load() {
    let (authority, folder, now) = (Authority::new(), tempfile::tempdir().unwrap(), SystemTime::now());
    let load =
        |wanted: &Wanted<'_>| Tls::load(authority.write(folder.path(), wanted)).unwrap_err().to_string();
    let expired = load(&Wanted { until: now - DAY / 2, ..Wanted::new(AGENT) });
    assert!(expired.contains("tls.crt expired at 20"), "{expired}");
    let early = load(&Wanted { from: now + DAY / 2, ..Wanted::new(AGENT) });
    assert!(early.contains("tls.crt is not yet valid, only from 20"), "{early}");
}

#[test]
fn new_files_come_into_force_and_broken_ones_never_do() {
    let authority = Authority::new();
    let node = node(&authority, AGENT);
    let (first, mut seen) = (node.tls.status().serial, Seen::default());
    let mut look = |times: u32| (0..times).for_each(|_| seen.look(&node.tls));
    let folder = node.files.cert.parent().unwrap();
    look(3);
    assert_eq!(node.tls.status().serial, first);

    authority.write(folder, &Wanted::new(AGENT));
    look(1);
    let second = node.tls.status();
    assert_ne!(second.serial, first);

    fs::write(&node.files.key, KeyPair::generate().unwrap().serialize_pem()).unwrap();
    look(1);
    assert_eq!(node.tls.status().reload_errors, 0, "it may be half of a swap");
    look(9);
    let third = node.tls.status();
    assert_eq!(
        (&third.serial, third.reload_errors),
        (&second.serial, 1),
        "told once, however often it is seen"
    );

    fs::remove_file(&node.files.cert).unwrap();
    look(9);
    assert_eq!(node.tls.status().reload_errors, 2);

    authority.write(folder, &Wanted::new(AGENT));
    look(1);
    assert_ne!(node.tls.status().serial, second.serial);
}
