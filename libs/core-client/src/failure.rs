//! What lies beneath a failure to speak with a core.

use std::{error::Error, io, iter};

use rustls::{AlertDescription, CertificateError};

/// An error and what caused it, outermost first. What is hidden inside I/O errors and HTTP/2 is
/// found too.
pub fn causes<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    iter::successors(Some(error), |&error| {
        let inner = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref)
            .map(|inner| inner as &(dyn Error + 'static));
        let io = error
            .downcast_ref::<h2::Error>()
            .and_then(h2::Error::get_io)
            .map(|io| io as &(dyn Error + 'static));
        inner.or(io).or_else(|| error.source())
    })
}

/// Whether an error of a type is among the causes.
pub fn is_caused_by<T: Error + 'static>(error: &(dyn Error + 'static)) -> bool {
    causes(error).any(<dyn Error>::is::<T>)
}

/// What to do about a TLS handshake that failed; none if it is not one.
pub fn tls_advice(error: &(dyn Error + 'static)) -> Option<String> {
    let error = causes(error).find_map(|cause| cause.downcast_ref::<rustls::Error>())?;
    let advice = match error {
        rustls::Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "it demands a certificate of its callers: give --core-tls-certificate and --core-tls-key".to_owned()
        }
        rustls::Error::AlertReceived(
            alert @ (AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateExpired
            | AlertDescription::DecryptError
            | AlertDescription::UnsupportedCertificate),
        ) => format!(
            "it does not accept our certificate ({alert:?}): give one of the authority that its --tls-client-ca names in --core-tls-certificate"
        ),
        rustls::Error::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        ) => "no authority that is trusted vouches for it: name the right one with --core-tls-ca".to_owned(),
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => "its certificate is for another name: call it by a name in its certificate".to_owned(),
        rustls::Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        ) => "its certificate has expired: renew the file of its --tls-certificate".to_owned(),
        rustls::Error::InvalidMessage(_) => "it speaks no TLS there: write http:// if that is meant".to_owned(),
        error => error.to_string(),
    };
    Some(advice)
}
