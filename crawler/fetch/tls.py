"""TLS over memory buffers, and what we think of a server's certificate.

A crawler that archives accepts any certificate (unless `fetch.verify_tls`) and writes down its verdict. OpenSSL's own
verdict is asked for by a first handshake that checks; where it fails, a second one accepts.
"""

from __future__ import annotations

import hashlib
import ssl
from collections import OrderedDict
from collections.abc import Callable

from crawler.fetch.exchange import TlsInfo
from crawler.fetch.headers import Origin

MAX_HANDSHAKE_BYTES = 65_536 + 4_096
"""All that a server may send before its handshake is done: a certificate chain of 64 KiB and the rest of its flight."""

RECORD_BYTES = 16_384
VERDICTS = {9: "expired", 10: "expired", 18: "self_signed", 62: "wrong_host", 64: "wrong_host"} | dict.fromkeys(
    (2, 19, 20, 21, 24, 27, 33), "untrusted"
)
"""OpenSSL's X509_V_ERR numbers in our words."""


class TlsError(Exception):
    """A handshake that cannot go on; `verdict` is set when it was the certificate."""

    def __init__(self, reason: str, verdict: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.verdict = verdict


class TlsLayer:
    """One TLS client session. Wire bytes go in by `receive`, wire bytes for the server come out by `pending`."""

    def __init__(self, context: ssl.SSLContext, server_name: str, verdict: str) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._session = context.wrap_bio(self._incoming, self._outgoing, server_hostname=server_name)
        self._handshake_bytes = 0
        self._verdict = verdict
        self.is_ready = False

    def shake_hands(self) -> None:
        """Go on with the handshake as far as the received bytes allow; TlsError when it cannot succeed."""
        try:
            self._session.do_handshake()
        except ssl.SSLWantReadError:
            return
        except ssl.SSLCertVerificationError as error:
            raise TlsError(error.verify_message, VERDICTS.get(error.verify_code, "other")) from None
        except (ssl.SSLError, ValueError) as error:
            raise TlsError(_reason(error)) from None
        self.is_ready = True

    def receive(self, data: memoryview) -> None:
        self._incoming.write(data)
        if not self.is_ready:
            self._handshake_bytes += len(data)
            if self._handshake_bytes > MAX_HANDSHAKE_BYTES:
                raise TlsError("handshake_too_large")
            self.shake_hands()

    def read(self, sink: Callable[[bytes], None]) -> bool:
        """Hand all decrypted bytes to `sink`; False when the server has ended the session."""
        read = self._session.read
        try:
            while data := read(RECORD_BYTES):
                sink(data)
        except ssl.SSLWantReadError:
            return True
        except ssl.SSLZeroReturnError:
            return False
        except ssl.SSLError as error:
            raise TlsError(_reason(error)) from None
        return False

    def write(self, data: bytes) -> None:
        self._session.write(data)

    def pending(self) -> bytes:
        return self._outgoing.read() if self._outgoing.pending else b""

    def info(self) -> TlsInfo:
        cipher = self._session.cipher()
        return TlsInfo(self._session.version() or "", cipher[0] if cipher else "", self._verdict)

    def certificate(self) -> bytes:
        """SHA-256 of the server's certificate."""
        return hashlib.sha256(self._session.getpeercert(binary_form=True) or b"").digest()


class TlsClient:
    """Makes TLS sessions for origins and remembers which of them showed a bad certificate (the newest 10,000)."""

    def __init__(self, *, verify: bool, roots: str | None = None) -> None:
        self.verify = verify
        self._roots = roots
        self._checking: ssl.SSLContext | None = None
        self._accepting: ssl.SSLContext | None = None
        self._bad: OrderedDict[Origin, tuple[bytes, str]] = OrderedDict()

    def session(self, origin: Origin, verdict: str | None = None) -> TlsLayer:
        """A session that checks the certificate, or one that accepts it because its `verdict` is known."""
        if verdict is None:
            self._checking = self._checking or checking_context(self._roots, lenient=not self.verify)
            return TlsLayer(self._checking, origin.name, "ok")
        self._accepting = self._accepting or accepting_context()
        return TlsLayer(self._accepting, origin.name, verdict)

    def known_verdict(self, origin: Origin) -> str | None:
        """The verdict on the bad certificate that this origin showed last time."""
        known = self._bad.get(origin)
        return known[1] if known else None

    def confirm(self, origin: Origin, layer: TlsLayer, verdict: str) -> bool:
        """True when the accepted certificate is the one that the verdict was on; remembers it when it is new."""
        certificate = layer.certificate()
        known = self._bad.setdefault(origin, (certificate, verdict))
        if len(self._bad) > 10_000:
            self._bad.popitem(last=False)
        if known[0] == certificate:
            return True
        del self._bad[origin]
        return False


def checking_context(roots: str | None, *, lenient: bool) -> ssl.SSLContext:
    """Verifies chain, dates and name. `lenient` lowers what does not concern the certificate's verdict: old protocol
    versions and key sizes, as an archive wants them."""
    context = ssl.create_default_context(cafile=roots)
    # From 3.13 on Python's default adds X509_STRICT and X509_PARTIAL_CHAIN; a verdict must not depend on that.
    context.verify_flags = ssl.VERIFY_X509_TRUSTED_FIRST
    if roots is None and not context.cert_store_stats()["x509_ca"]:
        _load_bundled_roots(context)
    return _loosen(context) if lenient else _common(context)


def accepting_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return _loosen(context)


def _common(context: ssl.SSLContext) -> ssl.SSLContext:
    context.set_alpn_protocols(["http/1.1"])
    return context


def _loosen(context: ssl.SSLContext) -> ssl.SSLContext:
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    context.set_ciphers("DEFAULT@SECLEVEL=0")
    context.options |= getattr(ssl, "OP_LEGACY_SERVER_CONNECT", 0x4)
    return _common(context)


def _load_bundled_roots(context: ssl.SSLContext) -> None:
    """A slim machine may have no roots of its own; those of the `certifi` package are better than none."""
    try:
        import certifi
    except ImportError:
        return
    context.load_verify_locations(certifi.where())


def _reason(error: Exception) -> str:
    return str(getattr(error, "reason", None) or error).lower()
