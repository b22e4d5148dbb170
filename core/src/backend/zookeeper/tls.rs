//! TLS: whom we trust and who we are. The server's certificate and its name are always checked.

use std::path::Path;

use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use zookeeper_client::TlsOptions;

use crate::error::{Error, Result};
use crate::options::TlsFiles;

/// Reads the files. No network I/O.
pub(super) fn options(files: &TlsFiles) -> Result<TlsOptions> {
    // The crate takes the provider of the process, and with two compiled in there is none.
    if CryptoProvider::get_default().is_none() {
        // Another thread may have set one meanwhile, which is as good.
        let _ = ring::default_provider().install_default();
    }
    let roots = match &files.ca {
        Some(ca) => read("tls_ca", ca)?,
        None => system_roots()?,
    };
    let broken = |option: &str, path: &Path| {
        Error::invalid(format!("{option} {path:?} does not hold PEM that can be used"))
    };
    let ca = files.ca.as_deref().unwrap_or(Path::new("of the system"));
    let options = TlsOptions::new().with_pem_ca(&roots).map_err(|_| broken("tls_ca", ca))?;
    match (&files.cert, &files.key) {
        (None, None) => Ok(options),
        (Some(cert), Some(key)) => options
            .with_pem_identity(&read("tls_cert", cert)?, &read("tls_key", key)?)
            .map_err(|_| broken("tls_cert or tls_key", cert)),
        (Some(_), None) => Err(Error::invalid("tls_cert is given without tls_key")),
        (None, Some(_)) => Err(Error::invalid("tls_key is given without tls_cert")),
    }
}

fn read(option: &str, path: &Path) -> Result<String> {
    std::fs::read_to_string(path)
        .map_err(|error| Error::invalid(format!("{option} {path:?} cannot be read: {error}")))
}

/// As PEM, which is what the crate takes.
fn system_roots() -> Result<String> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        return Err(Error::invalid("the system has no certificate authorities; give tls_ca"));
    }
    let pem = |der: &[u8]| {
        format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", base64(der))
    };
    Ok(found.certs.iter().map(|certificate| pem(certificate)).collect())
}

fn base64(bytes: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len() * 3 / 2);
    for (row, group) in bytes.chunks(3).enumerate() {
        if row > 0 && row % 16 == 0 {
            text.push('\n');
        }
        let mut padded = [0; 4];
        padded[1..=group.len()].copy_from_slice(group);
        let value = u32::from_be_bytes(padded);
        for place in 0..4_usize {
            let index = (value >> (18 - 6 * place)) & 63;
            text.push(if place <= group.len() { char::from(SIGNS[index as usize]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_pads() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xff; 60]).lines().map(str::len).collect::<Vec<_>>(), [64, 16]);
    }

    #[test]
    fn g10_tls_files_are_checked_before_any_io() {
        let missing = TlsFiles { ca: Some("/nowhere/ca.pem".into()), ..TlsFiles::default() };
        let alone = TlsFiles { cert: Some("/nowhere/cert.pem".into()), ..TlsFiles::default() };
        for files in [missing, alone] {
            assert_eq!(options(&files).unwrap_err().kind().code(), "INVALID_ARGUMENT");
        }
    }
}
