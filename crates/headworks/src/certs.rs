//! `headworks certs dev`: an authority and a certificate for each role, to try TLS with.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use clap::Args;
use headworks_core::message::Tier;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};

use crate::failure::Failure;

/// What cannot be signed: a name that is none.
#[derive(Debug, thiserror::Error)]
#[error("cannot make the certificates: {0}; are --host and --trust-domain plain names?")]
struct Unsignable(#[from] rcgen::Error);

impl From<Unsignable> for Failure {
    fn from(error: Unsignable) -> Self {
        Failure::Usage(error.to_string())
    }
}

/// Certificates begin earlier than now, for machines whose clocks are behind.
const SLACK: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);
/// Names of this machine, for which every certificate holds.
const LOCAL: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Make an authority and one certificate for each role, to try TLS between tiers with
///
/// Writes ca.crt and ca.key, and agent, aggregator and controller each as .crt and .key. For development: the
/// authority's key lies beside what it signed. In production let an issuer that renews certificates (cert-manager,
/// SPIRE, Vault) write the same files, with the role in a URI spiffe://TRUST-DOMAIN/headworks/ROLE[/ID].
#[derive(Debug, Args)]
pub(crate) struct CertsArgs {
    /// Folder to write to; it is made if it is missing
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Names or addresses under which nodes are dialled, besides localhost, 127.0.0.1 and ::1
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<String>,
    /// The trust domain in the roles' URIs
    #[arg(long, default_value = "headworks.local", value_name = "NAME")]
    trust_domain: String,
    /// How long the certificates hold
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=3650), value_name = "DAYS")]
    days: u32,
    /// Replace files that exist
    #[arg(long)]
    force: bool,
}

/// Runs the command.
pub(crate) fn dev(args: &CertsArgs) -> Result<(), Failure> {
    let mut files = Vec::new();
    let (authority, pem, key) = authority(args)?;
    files.push(("ca.crt".to_owned(), pem, PUBLIC));
    files.push(("ca.key".to_owned(), key, PRIVATE));
    for tier in [Tier::Agent, Tier::Aggregator, Tier::Controller] {
        let (pem, key) = certificate(args, tier, &authority)?;
        files.push((format!("{}.crt", tier.name()), pem, PUBLIC));
        files.push((format!("{}.key", tier.name()), key, PRIVATE));
    }
    write_all(args, &files)?;
    print!("{}", next_steps(&args.out));
    Ok(())
}

const PUBLIC: u32 = 0o644;
const PRIVATE: u32 = 0o600;

type Authority = Issuer<'static, KeyPair>;

fn authority(args: &CertsArgs) -> Result<(Authority, String, String), Unsignable> {
    let mut params = lasting(CertificateParams::new(Vec::new())?, args);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.distinguished_name.push(DnType::CommonName, "Headworks development authority");
    let key = KeyPair::generate()?;
    let (pem, secret) = (params.self_signed(&key)?.pem(), key.serialize_pem());
    Ok((Issuer::new(params, key), pem, secret))
}

fn certificate(args: &CertsArgs, tier: Tier, authority: &Authority) -> Result<(String, String), Unsignable> {
    let hosts: Vec<String> = LOCAL.into_iter().map(str::to_owned).chain(args.hosts.iter().cloned()).collect();
    let mut params = lasting(CertificateParams::new(hosts)?, args);
    let uri = format!("spiffe://{}/headworks/{}", args.trust_domain, tier.name());
    params.subject_alt_names.push(SanType::URI(uri.as_str().try_into()?));
    params.distinguished_name.push(DnType::CommonName, format!("Headworks {}", tier.name()));
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate()?;
    Ok((params.signed_by(&key, authority)?.pem(), key.serialize_pem()))
}

fn lasting(mut params: CertificateParams, args: &CertsArgs) -> CertificateParams {
    let now = SystemTime::now();
    params.not_before = (now - SLACK).into();
    params.not_after = (now + DAY * args.days).into();
    params
}

/// All or nothing is looked at first: half of a set that belongs together would be worse than none.
fn write_all(args: &CertsArgs, files: &[(String, String, u32)]) -> Result<(), Failure> {
    let exists = files.iter().map(|(name, ..)| args.out.join(name)).find(|path| path.exists());
    if let Some(path) = exists.filter(|_| !args.force) {
        let path = path.display();
        return Err(Failure::Usage(format!("{path} exists; give --force to replace it, or another --out")));
    }
    let failed = |path: &Path, error| Failure::Failed(format!("cannot write {}: {error}", path.display()));
    fs::create_dir_all(&args.out).map_err(|error| failed(&args.out, error))?;
    for (name, text, mode) in files {
        let path = args.out.join(name);
        replace(&path, text, *mode).map_err(|error| failed(&path, error))?;
    }
    Ok(())
}

/// Written beside and moved into place: a node that reads meanwhile sees old or new, and a key is never open to others,
/// not even if the file it replaces was.
fn replace(path: &Path, text: &str, mode: u32) -> std::io::Result<()> {
    let beside = path.with_extension("new");
    if beside.exists() {
        fs::remove_file(&beside)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&beside)?;
    file.write_all(text.as_bytes())?;
    fs::rename(beside, path)
}

fn next_steps(out: &Path) -> String {
    let tls = |role: &str| {
        let path = |name: String| out.join(name).display().to_string();
        let (cert, key, ca) =
            (path(format!("{role}.crt")), path(format!("{role}.key")), path("ca.crt".to_owned()));
        format!("--tls-cert {cert} --tls-key {key} --tls-ca {ca}")
    };
    format!(
        "Certificates for each role are in {}. Each in a shell of its own:\n\n\
         headworks controller --limits limits.yaml {}\n\
         headworks aggregator --zone a --controllers https://127.0.0.1:7200 {}\n\
         headworks agent --zone a --aggregators https://127.0.0.1:7100 {}\n\n\
         They are for development: keep ca.key to yourself, and renew them with --force before they expire.\n",
        out.display(),
        tls("controller"),
        tls("aggregator"),
        tls("agent"),
    )
}
