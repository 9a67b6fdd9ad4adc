//! Causes of errors in calls to a core, and advice for TLS errors.

use std::{error::Error, io, iter};

use rustls::{AlertDescription, CertificateError};
use tonic::{Code, Status};

/// An error and its causes, outermost first, including those inside I/O and HTTP/2 errors, which
/// `source` does not return.
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

/// Whether the error or one of its causes has the type.
pub fn is_caused_by<T: Error + 'static>(error: &(dyn Error + 'static)) -> bool {
    causes(error).any(<dyn Error>::is::<T>)
}

/// Whether a core has certainly sent this status. tonic's own statuses have a source, except those
/// of responses that are not gRPC, whose code is `Internal`. So an internal error is not certain.
pub fn is_from_core(status: &Status) -> bool {
    status.source().is_none() && status.code() != Code::Internal
}

/// How to fix a failed TLS handshake; `None` for any other error.
pub(crate) fn tls_advice(error: &(dyn Error + 'static)) -> Option<String> {
    let error = causes(error).find_map(|cause| cause.downcast_ref::<rustls::Error>())?;
    let advice = match error {
        rustls::Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "it requires a client certificate: set --core-tls-certificate and --core-tls-key".to_owned()
        }
        rustls::Error::AlertReceived(AlertDescription::CertificateExpired) => {
            "our client certificate has expired: renew the file in --core-tls-certificate".to_owned()
        }
        rustls::Error::AlertReceived(
            alert @ (AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown
            | AlertDescription::DecryptError
            | AlertDescription::UnsupportedCertificate),
        ) => format!(
            "it rejects the client certificate ({alert:?}): set --core-tls-certificate to one issued by an authority in its --tls-client-ca"
        ),
        rustls::Error::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        ) => "its certificate is not issued by a trusted authority: set --core-tls-ca to the right one".to_owned(),
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => "its certificate is for another name: use a name in its certificate".to_owned(),
        rustls::Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        ) => "its certificate has expired: renew its --tls-certificate".to_owned(),
        rustls::Error::InvalidMessage(_) => "it does not speak TLS: use http:// if that is intended".to_owned(),
        error => error.to_string(),
    };
    Some(advice)
}
