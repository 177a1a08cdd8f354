"""Certificate authority for one run, and the server's certificate signed by it.

Extensions are complete enough for clients that verify strictly (Python 3.13, Go): key usages, subject and authority
key identifiers, alternative names.
"""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFETIME = datetime.timedelta(days=365)
_SKEW = datetime.timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerIdentity:
    """PEM texts: the authority that clients trust, the server's certificate and its key."""

    ca_pem: str
    certificate_pem: str
    key_pem: str


def new_identity(hosts: tuple[str, ...], *, now: datetime.datetime) -> ServerIdentity:
    """Create a new authority and a server certificate for those host names and addresses."""
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = _name("kubernetes")
    ca = _authority(ca_name, ca_key, now)
    certificate = (
        _builder(_name("kube-apiserver"), ca_name, key, now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(sign_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_alternative(host) for host in hosts]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    pem = serialization.Encoding.PEM
    return ServerIdentity(
        ca_pem=ca.public_bytes(pem).decode(),
        certificate_pem=certificate.public_bytes(pem).decode(),
        key_pem=private.decode(),
    )


def load_chain(context: ssl.SSLContext, certificate_pem: str, key_pem: str) -> None:
    """Load a certificate and its key into the context. The key is on disk only while it is loaded."""
    with tempfile.TemporaryDirectory() as directory:
        certificate, key = Path(directory, "tls.crt"), Path(directory, "tls.key")
        certificate.write_text(certificate_pem)
        key.touch(mode=0o600)
        key.write_text(key_pem)
        context.load_cert_chain(certificate, key)


def _authority(name: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime.datetime) -> x509.Certificate:
    return (
        _builder(name, name, key, now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(sign_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime.datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _usage(*, sign_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not sign_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=sign_certificates,
        crl_sign=sign_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
