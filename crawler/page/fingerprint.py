"""What makes two pages the same: a checksum of the payload, a checksum of the words, a MinHash signature.

The signature is datasketch's (scheme affine32): its permutations, applied here to all shingles of a page at once. A
signature with its scheme, seed and permutations never changes its meaning; `Fingerprinter.scheme` names them all, and
signatures of different schemes must not be compared.

Bands and threshold. With 128 permutations in 16 bands of 8 rows, two texts whose sets of 5-word shingles have the
Jaccard similarity s share at least one band with the probability 1 - (1 - s^8)^16:

    s      0.40    0.50    0.60    0.70    0.75    0.80    0.85    0.90    0.95
    P      0.010   0.061   0.237   0.613   0.815   0.947   0.994   0.9999  1.0000

The curve is steepest near (1/16)^(1/8) = 0.71. Candidates are then verified: their signatures must estimate s at 0.8
or more (`near_duplicates.threshold`), with a standard error of sqrt(s (1 - s) / 128), 0.035 at 0.8. So of the pairs at
0.8 the bands lose 5 %, of those at 0.9 none, and a pair at 0.7 must be off by 2.5 standard errors to pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_64_intdigest

_BLOCK_CHARS = 1 << 20
_BLOCK_SHINGLES = 2_048  # 128 permutations of them fill 1 MiB: the cache of a core
_MIX = 0x9E3779B97F4A7C15
_SPACE = re.compile("[\t\n\x0b\f\r \xa0]")  # what ends a word in a text of any script
# Scripts that are written without spaces: each character counts as a word. Thai and Lao, Burmese, Khmer, kana, Han.
_UNSPACED = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])"
)
_UNSPACED_BYTES = re.compile(rb"[\xe0\xe1\xe3-\xe9\xef\xf0]")  # first bytes of theirs in UTF-8, and of some others


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The fingerprints of a text. Checksum, signature and bands are there from `min_words` words on."""

    words: int
    text_checksum: int | None = None  # signed 64-bit checksum of the casefolded words
    signature: bytes | None = None  # low byte of each permutation's minimum
    bands: list[int] = field(default_factory=list)  # signed 64-bit keys


class Fingerprinter:
    """Makes fingerprints by one scheme."""

    def __init__(
        self, permutations: int = 128, bands: int = 16, shingle_words: int = 5, min_words: int = 20, seed: int = 1
    ) -> None:
        if permutations % bands:
            raise ValueError(f"near_duplicates.bands: {bands} does not divide {permutations} permutations")
        self._permutations, self._seed = permutations, seed
        self._bands, self._row_bytes = bands, permutations // bands * 4
        self._shingle_words, self._min_words = shingle_words, max(min_words, 1)
        powers = [pow(_MIX, power, 1 << 64) for power in range(shingle_words)]
        self._weights = np.array(powers, dtype=np.uint64)
        self.scheme = f"affine32/seed{seed}/perm{permutations}/bands{bands}/words{shingle_words}"

    def warm_up(self) -> None:
        """Import and compute what the first text would otherwise pay for."""
        _ = self._affine

    def spec(self) -> dict[str, Any]:
        """All that another process needs to make the same fingerprints, in JSON's types."""
        return {
            "scheme": (self._permutations, self._bands, self._shingle_words, self._min_words, self._seed),
            "affine": [column.ravel().tolist() for column in self._affine],
        }

    @classmethod
    def of_spec(cls, spec: dict[str, Any]) -> Fingerprinter:
        """The fingerprinter of a spec. It imports no SciPy."""
        prints = cls(*spec["scheme"])
        factors, terms = (np.array(column, np.uint32).reshape(-1, 1) for column in spec["affine"])
        prints.__dict__["_affine"] = factors, terms
        return prints

    def of(self, text: str) -> Fingerprint:
        """The fingerprint of a text."""
        words = word_hashes(text)
        if len(words) < self._min_words:
            return Fingerprint(len(words))
        minima = self.minima(self.shingles(words))
        signature = minima.astype(np.uint8).tobytes()
        return Fingerprint(len(words), payload_checksum(words.tobytes()), signature, self._band_keys(minima))

    def shingles(self, words: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """32-bit hashes of all runs of `shingle_words` words, from the hashes of the words. One run at the least."""
        size = min(self._shingle_words, len(words))
        count = len(words) - size + 1
        mixed = np.zeros(count, np.uint64)
        for at in range(size):
            mixed += words[at : at + count] * self._weights[at]
        mixed ^= mixed >> np.uint64(29)
        mixed *= np.uint64(_MIX)
        return (mixed >> np.uint64(32)).astype(np.uint32)

    def minima(self, shingles: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """datasketch's hash values of a set of 32-bit hashes: the minimum of each permutation."""
        mixed = _fmix32(shingles)
        factors, terms = self._affine
        minima = np.full(len(factors), 0xFFFFFFFF, np.uint32)
        for at in range(0, len(mixed), _BLOCK_SHINGLES):
            permuted = factors * mixed[at : at + _BLOCK_SHINGLES]
            permuted += terms
            np.minimum(minima, permuted.min(axis=1), out=minima)
        return minima

    @cached_property
    def _affine(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Factor and term of each permutation, in columns."""
        from datasketch import MinHash  # late: it brings all of SciPy, and the first request need not wait for that

        factors, terms = MinHash(self._permutations, seed=self._seed, scheme="affine32").permutations
        return factors.reshape(-1, 1), terms.reshape(-1, 1)

    def _band_keys(self, minima: NDArray[np.uint32]) -> list[int]:
        rows, size = minima.astype("<u4").tobytes(), self._row_bytes
        parts = [rows[at : at + size] for at in range(0, len(rows), size)]
        return [_signed(key) for key in map(xxh3_64_intdigest, parts, range(self._bands))]


def payload_checksum(body: bytes) -> int:
    """The signed 64-bit checksum of a decoded body."""
    return _signed(xxh3_64_intdigest(body))


def similarity(one: bytes, other: bytes) -> float:
    """The estimated Jaccard similarity of the texts behind two signatures of one scheme, in 0..1."""
    return float(similarities(np.frombuffer(one, np.uint8), other)[0])


def similarities(many: NDArray[np.uint8], one: bytes) -> NDArray[np.float64]:
    """`similarity` of each row of an array of signatures to one signature.

    Low bytes of different values agree by chance once in 256 times; the estimate is corrected for that (Li and König,
    b-Bit Minwise Hashing, 2010, theorem 1 with small sets in a large universe).
    """
    other = np.frombuffer(one, np.uint8)
    agreeing = (many.reshape(-1, len(other)) == other).mean(axis=1)
    estimate: NDArray[np.float64] = np.clip((agreeing - 1 / 256) / (1 - 1 / 256), 0.0, 1.0)
    return estimate


def word_hashes(text: str) -> NDArray[np.uint64]:
    """xxh3_64 of each casefolded word of a text. Words end at ASCII white space and no-break spaces."""
    if len(text) <= _BLOCK_CHARS:
        return _hashes(text)
    return np.concatenate([_hashes(block) for block in _blocks(text)])


def _blocks(text: str) -> Iterator[str]:
    """The text in pieces that end at the end of a word, so that a long text needs little memory at a time."""
    at = 0
    while at < len(text):
        space = _SPACE.search(text, at + _BLOCK_CHARS)
        end = space.start() if space else len(text)
        yield text[at:end]
        at = end


def _hashes(text: str) -> NDArray[np.uint64]:
    folded = text.casefold()
    encoded = folded.encode("utf-8", "replace")
    if not folded.isascii():
        if _UNSPACED_BYTES.search(encoded):
            encoded = " ".join(_UNSPACED.split(folded)).encode("utf-8", "replace").replace(b"\xe3\x80\x80", b" ")
        encoded = encoded.replace(b"\xc2\xa0", b" ")
    tokens = encoded.split()
    return np.fromiter(map(xxh3_64_intdigest, tokens), np.uint64, len(tokens))


def _fmix32(values: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """MurmurHash3's finaliser, as datasketch applies it before its permutations."""
    mixed = values ^ (values >> np.uint32(16))
    mixed *= np.uint32(0x85EBCA6B)
    mixed ^= mixed >> np.uint32(13)
    mixed *= np.uint32(0xC2B2AE35)
    mixed ^= mixed >> np.uint32(16)
    return mixed


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
