"""Certificates for tests, made by the openssl program: one root, and leaves with one fault each."""

from __future__ import annotations

import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


@dataclass(frozen=True)
class Authority:
    """A root of our own. Its leaves are for `site.example` unless told otherwise."""

    folder: Path
    name: str = "root"

    @property
    def roots(self) -> str:
        return str(self.folder / f"{self.name}.pem")

    def create(self) -> Authority:
        _openssl("req", "-x509", *KEY, "-keyout", self._path("key"), "-out", self.roots, "-days", "30",
                 "-subj", f"/CN={self.name}")  # fmt: skip
        return self

    def leaf(self, kind: str, name: str = "site.example", days: int = 30, padding: int = 0) -> ssl.SSLContext:
        """A server context whose certificate this authority signed; `padding` names make it as large as wanted."""
        stem = str(self.folder / f"{self.name}-{kind}")
        names = [f"DNS:{name}", *(f"DNS:{number:0>60}.{name}" for number in range(padding))]
        Path(f"{stem}.ext").write_text(f"subjectAltName={','.join(names)}\n", encoding="ascii")
        _openssl("req", *KEY, "-keyout", f"{stem}.key", "-out", f"{stem}.csr", "-subj", f"/CN={name}")
        _openssl("x509", "-req", "-in", f"{stem}.csr", "-CA", self.roots, "-CAkey", self._path("key"),
                 "-CAcreateserial", "-days", str(days), "-extfile", f"{stem}.ext", "-out", f"{stem}.pem")  # fmt: skip
        return server_context(f"{stem}.pem", f"{stem}.key")

    def self_signed(self) -> ssl.SSLContext:
        stem = str(self.folder / "self")
        _openssl("req", "-x509", *KEY, "-keyout", f"{stem}.key", "-out", f"{stem}.pem", "-days", "30",
                 "-subj", "/CN=site.example", "-addext", "subjectAltName=DNS:site.example")  # fmt: skip
        return server_context(f"{stem}.pem", f"{stem}.key")

    def _path(self, ending: str) -> str:
        return str(self.folder / f"{self.name}.{ending}")


def server_context(chain: str, key: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, key)
    return context


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)
