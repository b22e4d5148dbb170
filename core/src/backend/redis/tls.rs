//! TLS: whom we trust, who we are, and what a failed handshake means.

use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{AlertDescription, ClientConfig, Error as TlsError, RootCertStore};

use super::fault::Fault;
use crate::error::{Error, Result};
use crate::options::TlsFiles;

/// How to speak TLS. The server's certificate and its name are always checked: a lock that
/// anybody on the way can take apart is none, so there is no switch for it.
#[derive(Clone)]
pub(super) struct Tls {
    config: Arc<ClientConfig>,
}

impl Tls {
    /// Reads the files. No network I/O.
    pub(super) fn new(files: &TlsFiles) -> Result<Self> {
        let broken = |error: TlsError| Error::invalid(format!("TLS cannot be set up: {error}"));
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(broken)?
            .with_root_certificates(roots(files.ca.as_deref())?);
        let config = match (&files.cert, &files.key) {
            (None, None) => config.with_no_client_auth(),
            (Some(cert), Some(key)) => {
                let chain = certificates("tls_cert", cert)?;
                let key_of = PrivateKeyDer::from_pem_file(key)
                    .map_err(|error| unreadable("tls_key", key, "private key", &error))?;
                config.with_client_auth_cert(chain, key_of).map_err(|error| {
                    Error::invalid(format!(
                        "tls_cert {cert:?} and tls_key {key:?} do not fit together: {error}"
                    ))
                })?
            }
            (Some(_), None) => return Err(Error::invalid("tls_cert is given without tls_key")),
            (None, Some(_)) => return Err(Error::invalid("tls_key is given without tls_cert")),
        };
        Ok(Tls { config: Arc::new(config) })
    }

    /// The handshake, within the limit: a port without TLS may wait for more of it for ever.
    pub(super) async fn connect(
        &self,
        host: &str,
        stream: TcpStream,
        limit: Duration,
    ) -> Result<Box<TlsStream<TcpStream>>, Fault> {
        let name = ServerName::try_from(host.to_owned()).map_err(|_| {
            Fault::Certificate("the host is no name that a certificate can have".into())
        })?;
        let connecting = TlsConnector::from(self.config.clone()).connect(name, stream);
        match timeout(limit, connecting).await {
            Ok(Ok(stream)) => Ok(Box::new(stream)),
            Ok(Err(error)) => {
                Err(refusal(&error).unwrap_or_else(|| Fault::NoTls(error.to_string().into())))
            }
            Err(_) => Err(Fault::NoTls(
                format!("the handshake was not answered within {} ms", limit.as_millis()).into(),
            )),
        }
    }
}

/// The given authorities and no others, or those of the system.
fn roots(ca: Option<&Path>) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    if let Some(ca) = ca {
        for certificate in certificates("tls_ca", ca)? {
            roots.add(certificate).map_err(|error| {
                Error::invalid(format!(
                    "tls_ca {ca:?} has a certificate that cannot be used: {error}"
                ))
            })?;
        }
        return Ok(roots);
    }
    // Read once: this takes some ten milliseconds.
    static SYSTEM: OnceLock<RootCertStore> = OnceLock::new();
    let system = SYSTEM.get_or_init(|| {
        let found = rustls_native_certs::load_native_certs();
        for error in &found.errors {
            tracing::debug!(%error, "a certificate of the system cannot be read");
        }
        roots.add_parsable_certificates(found.certs);
        roots
    });
    Ok(system.clone())
}

fn certificates(option: &str, file: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(Error::invalid(format!("{option} {file:?} has no certificate in PEM form"))),
        Err(error) => Err(unreadable(option, file, "certificate", &error)),
    }
}

fn unreadable(option: &str, file: &Path, what: &str, error: &dyn std::fmt::Display) -> Error {
    Error::invalid(format!("{option} {file:?} cannot be read as a {what} in PEM form: {error}"))
}

/// The fault when one side refused the other's certificate; also for what is read later: a server
/// refuses a client's only after the handshake seems done.
pub(super) fn refusal(error: &io::Error) -> Option<Fault> {
    let error = error.get_ref()?.downcast_ref::<TlsError>()?;
    let ours_refused = |alert: &AlertDescription| {
        matches!(
            alert,
            AlertDescription::CertificateRequired
                | AlertDescription::NoCertificate
                | AlertDescription::BadCertificate
                | AlertDescription::UnsupportedCertificate
                | AlertDescription::CertificateRevoked
                | AlertDescription::CertificateExpired
                | AlertDescription::CertificateUnknown
                | AlertDescription::UnknownCA
                | AlertDescription::AccessDenied
        )
    };
    match error {
        TlsError::InvalidCertificate(_) | TlsError::NoCertificatesPresented => {
            Some(Fault::Certificate(format!("its certificate is not accepted: {error}").into()))
        }
        TlsError::AlertReceived(alert) if ours_refused(alert) => Some(Fault::Certificate(
            format!("it asks for a client certificate that it trusts (tls_cert, tls_key): {error}")
                .into(),
        )),
        _ => None,
    }
}
