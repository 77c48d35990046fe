//! Authorities, certificates, and folders that hold them as Kubernetes mounts secrets.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SanType};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tempfile::TempDir;
use x509_cert::der::Decode;

const DAY: Duration = Duration::from_secs(86_400);

/// The URI of a role, or of one node in it.
pub(crate) fn uri(role: &str) -> String {
    format!("spiffe://headworks.test/headworks/{role}")
}

/// Who signs.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) pem: String,
    pub(crate) der: CertificateDer<'static>,
}

/// A certificate and its key.
pub(crate) struct Issued {
    pub(crate) cert: String,
    pub(crate) key: String,
    pub(crate) serial: String,
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) secret: PrivateKeyDer<'static>,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let own = params.self_signed(&key).unwrap();
        Self { pem: own.pem(), der: own.der().clone(), issuer: Issuer::new(params, key) }
    }

    /// For localhost, good now.
    pub(crate) fn issue(&self, role: &str) -> Issued {
        let now = SystemTime::now();
        self.issue_for(role, now - DAY, now + DAY)
    }

    /// Good until yesterday.
    pub(crate) fn issue_expired(&self, role: &str) -> Issued {
        let now = SystemTime::now();
        self.issue_for(role, now - 2 * DAY, now - DAY)
    }

    /// Good from tomorrow on.
    pub(crate) fn issue_early(&self, role: &str) -> Issued {
        let now = SystemTime::now();
        self.issue_for(role, now + DAY, now + 2 * DAY)
    }

    fn issue_for(&self, role: &str, from: SystemTime, until: SystemTime) -> Issued {
        let names = ["localhost", "127.0.0.1"].map(str::to_owned);
        let mut params = CertificateParams::new(names).unwrap();
        params.subject_alt_names.push(SanType::URI(uri(role).as_str().try_into().unwrap()));
        (params.not_before, params.not_after) = (from.into(), until.into());
        let key = KeyPair::generate().unwrap();
        let cert = params.signed_by(&key, &self.issuer).unwrap();
        let secret = PrivatePkcs8KeyDer::from(key.serialize_der());
        Issued {
            cert: cert.pem(),
            key: key.serialize_pem(),
            serial: serial_of(cert.der()),
            chain: vec![cert.der().clone()],
            secret: secret.into(),
        }
    }
}

/// The serial number of a certificate, as a node tells its own.
pub(crate) fn serial_of(der: &[u8]) -> String {
    x509_cert::Certificate::from_der(der).unwrap().tbs_certificate.serial_number.to_string()
}

/// A folder with tls.crt, tls.key and ca.crt, each a link through `..data` to the newest version.
pub(crate) struct Secret {
    folder: TempDir,
    version: Cell<u32>,
}

impl Secret {
    pub(crate) fn new(issued: &Issued, authorities: &str) -> Self {
        let secret = Self { folder: tempfile::tempdir().unwrap(), version: Cell::new(0) };
        secret.swap(&issued.cert, &issued.key, authorities);
        for name in ["tls.crt", "tls.key", "ca.crt"] {
            symlink(format!("..data/{name}"), secret.path(name)).unwrap();
        }
        secret
    }

    /// Puts another version in place of all three files at one stroke.
    pub(crate) fn swap(&self, cert: &str, key: &str, authorities: &str) {
        self.version.set(self.version.get() + 1);
        let name = format!("..version-{}", self.version.get());
        fs::create_dir(self.path(&name)).unwrap();
        for (file, text) in [("tls.crt", cert), ("tls.key", key), ("ca.crt", authorities)] {
            fs::write(self.path(&name).join(file), text).unwrap();
        }
        symlink(&name, self.path("..next")).unwrap();
        fs::rename(self.path("..next"), self.path("..data")).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The flags that name the files.
    pub(crate) fn args(&self) -> Vec<String> {
        let flags = [("--tls-cert", "tls.crt"), ("--tls-key", "tls.key"), ("--tls-ca", "ca.crt")];
        flags
            .iter()
            .flat_map(|(flag, name)| [(*flag).to_owned(), self.path(name).display().to_string()])
            .collect()
    }
}

/// What a fleet needs: one authority, and a secret for each role.
pub(crate) struct Pki {
    pub(crate) authority: Authority,
    pub(crate) agent: Secret,
    pub(crate) aggregator: Secret,
    pub(crate) controller: Secret,
}

impl Pki {
    pub(crate) fn new() -> Self {
        let authority = Authority::new("of the fleet");
        let secret = |role: &str| Secret::new(&authority.issue(role), &authority.pem);
        let (agent, aggregator, controller) = (secret("agent"), secret("aggregator"), secret("controller"));
        Self { authority, agent, aggregator, controller }
    }

    pub(crate) fn of(&self, role: &str) -> &Secret {
        match role {
            "agent" => &self.agent,
            "aggregator" => &self.aggregator,
            _ => &self.controller,
        }
    }
}
