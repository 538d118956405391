//! An authority and the certificate that it signed, as they are made and as they are stored.

use std::{collections::BTreeMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::{crypto::ring, sign::CertifiedKey};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};

use super::decide::{AUTHORITY_LIFE, CERTIFICATE_LIFE};

/// Clocks of machines differ; a certificate is good a little before it is made.
const HEAD_START: SignedDuration = SignedDuration::from_hours(1);
const END_OF_CERTIFICATE: &str = "-----END CERTIFICATE-----\n";

/// The keys of the Secret. All but that of the authority's key are those of the releases 0.19 to 0.32.
mod keys {
    pub const AUTHORITY: &str = "ca-cert.pem";
    pub const AUTHORITY_KEY: &str = "ca-key.pem";
    pub const CERTIFICATE: &str = "server-cert.pem";
    pub const KEY: &str = "server-key.pem";
}

/// What the certificates say themselves, for whoever reads the Secret, this program included.
mod annotations {
    pub const AUTHORITY_UNTIL: &str = "compatibility.karpenter.sh/authority-until";
    pub const CERTIFICATE_UNTIL: &str = "compatibility.karpenter.sh/certificate-until";
    pub const NAMES: &str = "compatibility.karpenter.sh/certificate-names";
}

/// Why a certificate cannot be offered.
#[derive(Debug, thiserror::Error)]
pub enum Uncertified {
    #[error("the certificate or its key is no PEM")]
    Pem(#[source] rustls_pki_types::pem::Error),
    #[error("the certificate and its key do not go together")]
    Mismatch(#[source] rustls::Error),
}

/// Who signs, and what is offered in handshakes. All keys and certificates are in PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// The authority that signs next, and before it the one that signed last, as long as that may be in use.
    authority: Vec<String>,
    authority_key: String,
    pub authority_until: Timestamp,
    certificate: String,
    key: String,
    pub certificate_until: Timestamp,
    /// What the certificate is good for.
    pub names: Vec<String>,
}

/// The parameters of an authority follow from its end, so that it can be told again who signs.
fn authority_params(until: Timestamp) -> CertificateParams {
    let mut params = CertificateParams::default();
    let name = format!("karpenter webhooks until {until}");
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    params
}

/// Certificates know whole seconds.
fn until(now: Timestamp, life: SignedDuration) -> Timestamp {
    let end = now + life;
    Timestamp::from_second(end.as_second()).unwrap_or(end)
}

fn set_life(params: &mut CertificateParams, now: Timestamp, until: Timestamp) {
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let seconds = |moment: Timestamp| std::time::Duration::from_secs(moment.as_second().try_into().unwrap_or(0));
    params.not_before = epoch + seconds(now - HEAD_START);
    params.not_after = epoch + seconds(until);
}

struct Authority {
    certificate: String,
    key: String,
    until: Timestamp,
}

fn authority(now: Timestamp) -> Result<Authority, rcgen::Error> {
    let until = until(now, AUTHORITY_LIFE);
    let mut params = authority_params(until);
    set_life(&mut params, now, until);
    let key = KeyPair::generate()?;
    Ok(Authority {
        certificate: params.self_signed(&key)?.pem(),
        key: key.serialize_pem(),
        until,
    })
}

impl Identity {
    pub fn new(names: &[String], now: Timestamp) -> Result<Self, rcgen::Error> {
        let authority = authority(now)?;
        let unsigned = Self {
            authority: vec![authority.certificate],
            authority_key: authority.key,
            authority_until: authority.until,
            certificate: String::new(),
            key: String::new(),
            certificate_until: now,
            names: Vec::new(),
        };
        unsigned.with_new_certificate(names, now)
    }

    /// The certificate stays as it is, signed by the authority before.
    pub fn with_new_authority(&self, now: Timestamp) -> Result<Self, rcgen::Error> {
        let authority = authority(now)?;
        let signed_last = self.authority.first().cloned();
        Ok(Self {
            authority: [authority.certificate].into_iter().chain(signed_last).collect(),
            authority_key: authority.key,
            authority_until: authority.until,
            ..self.clone()
        })
    }

    pub fn with_new_certificate(&self, names: &[String], now: Timestamp) -> Result<Self, rcgen::Error> {
        let issuer = Issuer::new(
            authority_params(self.authority_until),
            KeyPair::from_pem(&self.authority_key)?,
        );
        let until = until(now, CERTIFICATE_LIFE);
        let mut params = CertificateParams::new(names.to_vec())?;
        set_life(&mut params, now, until);
        params.distinguished_name.push(DnType::CommonName, "karpenter webhooks");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        Ok(Self {
            certificate: params.signed_by(&key, &issuer)?.pem(),
            key: key.serialize_pem(),
            certificate_until: until,
            names: names.to_vec(),
            ..self.clone()
        })
    }

    /// Whom to trust, in PEM.
    pub fn authorities(&self) -> String {
        self.authority.concat()
    }

    /// What is offered in handshakes.
    pub fn certified_key(&self) -> Result<Arc<CertifiedKey>, Uncertified> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(self.certificate.as_bytes()).collect();
        let chain = chain.map_err(Uncertified::Pem)?;
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).map_err(Uncertified::Pem)?;
        let certified = CertifiedKey::from_der(chain, key, &ring::default_provider());
        Ok(Arc::new(certified.map_err(Uncertified::Mismatch)?))
    }

    /// What a Secret holds; nothing, if any part of it is missing or cannot be used.
    pub fn stored(secret: &Secret) -> Option<Self> {
        let data = secret.data.as_ref()?;
        let text = |key: &str| String::from_utf8(data.get(key)?.0.clone()).ok();
        let annotations = secret.metadata.annotations.as_ref()?;
        let moment = |key: &str| annotations.get(key)?.parse::<Timestamp>().ok();
        let stored = Self {
            authority: text(keys::AUTHORITY)?
                .split_inclusive(END_OF_CERTIFICATE)
                .map(str::to_owned)
                .collect(),
            authority_key: text(keys::AUTHORITY_KEY)?,
            authority_until: moment(annotations::AUTHORITY_UNTIL)?,
            certificate: text(keys::CERTIFICATE)?,
            key: text(keys::KEY)?,
            certificate_until: moment(annotations::CERTIFICATE_UNTIL)?,
            names: annotations
                .get(annotations::NAMES)?
                .split(',')
                .map(str::to_owned)
                .collect(),
        };
        let is_usable = stored.certified_key().is_ok() && KeyPair::from_pem(&stored.authority_key).is_ok();
        is_usable.then_some(stored)
    }

    /// The Secret that holds it. What else the old one has stays, its version with it: another writer is noticed.
    pub fn secret(&self, name: &str, old: Option<Secret>) -> Secret {
        let mut secret = old.unwrap_or_default();
        secret.metadata.name = Some(name.to_owned());
        let said = secret.metadata.annotations.get_or_insert_default();
        said.insert(
            annotations::AUTHORITY_UNTIL.to_owned(),
            self.authority_until.to_string(),
        );
        said.insert(
            annotations::CERTIFICATE_UNTIL.to_owned(),
            self.certificate_until.to_string(),
        );
        said.insert(annotations::NAMES.to_owned(), self.names.join(","));
        let parts = [
            (keys::AUTHORITY, &self.authorities()),
            (keys::AUTHORITY_KEY, &self.authority_key),
            (keys::CERTIFICATE, &self.certificate),
            (keys::KEY, &self.key),
        ];
        let parts = parts.map(|(key, text)| (key.to_owned(), ByteString(text.clone().into_bytes())));
        secret.data.get_or_insert_with(BTreeMap::new).extend(parts);
        secret
    }
}
