//! TLS of the service. The certificate and its key are read again when their files change, so a renewal needs
//! no restart.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig, crypto};

use crate::lock;

/// The files of a certificate and its key.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The certificate chain, without the trusted root (PEM).
    pub certificate: PathBuf,
    /// The private key (PEM).
    pub key: PathBuf,
}

/// The modification times of both files.
type Stamp = [Option<SystemTime>; 2];

/// The current TLS configuration.
pub(crate) struct Tls {
    files: TlsFiles,
    now: Mutex<(Stamp, Arc<ServerConfig>)>,
}

impl Tls {
    /// Reads both files.
    ///
    /// # Errors
    /// A file cannot be read or is invalid, or the key does not fit the certificate.
    pub(crate) fn new(files: TlsFiles) -> Result<Self, String> {
        let stamp = files.stamp();
        let config = Arc::new(files.config()?);
        Ok(Self { files, now: Mutex::new((stamp, config)) })
    }

    /// The configuration of the next connection. If the changed files are invalid, returns the previous
    /// configuration and an error.
    pub(crate) fn config(&self) -> (Arc<ServerConfig>, Option<String>) {
        let mut now = lock(&self.now);
        let stamp = self.files.stamp();
        let mut problem = None;
        if stamp != now.0 {
            now.0 = stamp;
            match self.files.config() {
                Ok(config) => now.1 = Arc::new(config),
                Err(wrong) => problem = Some(format!("{wrong}; the service keeps its previous certificate")),
            }
        }
        (Arc::clone(&now.1), problem)
    }
}

impl TlsFiles {
    fn stamp(&self) -> Stamp {
        let written = |path: &Path| std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
        [written(&self.certificate), written(&self.key)]
    }

    fn config(&self) -> Result<ServerConfig, String> {
        let chain = certificates(&self.certificate)?;
        let key = PrivateKeyDer::from_pem_file(&self.key)
            .map_err(|error| format!("{}: found no private key (PEM): {error}", self.key.display()))?;
        let config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_no_client_auth()
            .with_single_cert(chain, key);
        let mut config = config
            .map_err(|error| format!("{} and {}: {error}", self.certificate.display(), self.key.display()))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}

/// The certificates of a file, at least one.
///
/// # Errors
/// The file cannot be read or has no certificate.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let wrong =
        |error: &dyn std::fmt::Display| format!("{}: found no certificate (PEM): {error}", path.display());
    let all = CertificateDer::pem_file_iter(path).map_err(|error| wrong(&error))?;
    let all: Vec<_> = all.collect::<Result<_, _>>().map_err(|error| wrong(&error))?;
    if all.is_empty() { Err(wrong(&"it has no section CERTIFICATE")) } else { Ok(all) }
}

/// A client configuration that trusts the certificates of a file, or those that this machine trusts.
///
/// # Errors
/// The file cannot be read, or there is no trusted certificate.
pub(crate) fn trusting(file: Option<&Path>) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    match file {
        Some(path) => {
            for certificate in certificates(path)? {
                let added = roots.add(certificate);
                added.map_err(|error| format!("{}: {error}", path.display()))?;
            }
        }
        None => drop(roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs)),
    }
    if roots.is_empty() {
        return Err("this machine trusts no certificates; pass a file with --trust".to_owned());
    }
    let config = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}
