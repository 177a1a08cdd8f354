"""TLS to API servers of every age, with the strict checks that Python 3.13 switches on by default."""

import datetime as dt
import ipaddress
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from leeward.adapters.kubernetes.answers import ApiRequest
from leeward.adapters.kubernetes.client import ClusterClient, Endpoint
from leeward.errors import ClusterUnreachableError
from tests.fakes.clock import FakeClock

VERSION = ApiRequest(verb="get", resource="version", path="/version")
NOW = dt.datetime.now(dt.UTC)


class KubeConfig:
    """The endpoint of one cluster, and its token."""

    def __init__(self, url, ca):
        self._endpoint = Endpoint(url=url, ca=ca)

    def endpoint(self, *, fresh=False):
        return self._endpoint

    def token(self, *, fresh=False):
        return "token"


def _name(text):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(subject, issuer, key, *, days):
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - dt.timedelta(days=30))
        .not_valid_after(NOW + dt.timedelta(days=days))
    )


def make_authority(*, key_identifiers):
    """A cluster's CA: with key identifiers as EKS creates them now, without as it did on Kubernetes 1.16 and older."""
    key = ec.generate_private_key(ec.SECP256R1())
    usage = x509.KeyUsage(*[name in {"digital_signature", "key_encipherment", "key_cert_sign"} for name in USAGES])
    builder = _builder("kubernetes", "kubernetes", key, days=3650)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    builder = builder.add_extension(usage, critical=True)
    if key_identifiers:
        builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    return builder.sign(key, hashes.SHA256()), key


USAGES = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)


def make_server_certificate(authority, authority_key, *, key_identifiers, address="127.0.0.1", days=365):
    key = ec.generate_private_key(ec.SECP256R1())
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
    builder = _builder("kube-apiserver", "kubernetes", key, days=days).add_extension(names, critical=False)
    if key_identifiers:
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
        builder = builder.add_extension(issuer, critical=False)
    return builder.sign(authority_key, hashes.SHA256()), key


@pytest.fixture
def serve(tmp_path):
    """Start an HTTPS server with a certificate on loopback; returns its URL."""
    servers = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_):
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_):
            """Keep refused handshakes out of the test's output."""

    def start(certificate, key):
        chain = tmp_path / f"{len(servers)}.pem"
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        chain.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + private)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain)
        server = Server(("127.0.0.1", 0), Handler)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        servers.append(server)
        return f"https://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture(autouse=True)
def strict_by_default(monkeypatch):
    """What `ssl.create_default_context` does from Python 3.13 on."""
    original = ssl.create_default_context

    def create(*arguments, **options):
        context = original(*arguments, **options)
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", create)


def client_of(url, authority):
    pem = authority.public_bytes(serialization.Encoding.PEM).decode()
    return ClusterClient("blue", KubeConfig(url, pem), FakeClock())


@pytest.mark.parametrize("key_identifiers", [True, False], ids=["current-ca", "ca-without-key-identifiers"])
def test_a_cluster_of_any_age_is_reached(serve, key_identifiers):
    authority, key = make_authority(key_identifiers=key_identifiers)
    url = serve(*make_server_certificate(authority, key, key_identifiers=key_identifiers))
    assert client_of(url, authority).ask(VERSION) == {}


def test_a_certificate_of_another_authority_is_refused(serve):
    authority, key = make_authority(key_identifiers=True)
    other, _ = make_authority(key_identifiers=True)
    url = serve(*make_server_certificate(authority, key, key_identifiers=True))
    with pytest.raises(ClusterUnreachableError, match="certificate verify failed"):
        client_of(url, other).ask(VERSION)


def test_a_certificate_for_another_host_is_refused(serve):
    authority, key = make_authority(key_identifiers=True)
    url = serve(*make_server_certificate(authority, key, key_identifiers=True, address="127.0.0.9"))
    with pytest.raises(ClusterUnreachableError, match="IP address mismatch"):
        client_of(url, authority).ask(VERSION)


def test_an_expired_certificate_is_refused(serve):
    authority, key = make_authority(key_identifiers=True)
    url = serve(*make_server_certificate(authority, key, key_identifiers=True, days=-1))
    with pytest.raises(ClusterUnreachableError, match="expired"):
        client_of(url, authority).ask(VERSION)
