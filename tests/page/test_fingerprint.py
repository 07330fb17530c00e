from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from datasketch import MinHash
from hypothesis import given
from hypothesis import strategies as st

from crawler.page import fingerprint
from crawler.page.fingerprint import Fingerprinter, payload_checksum, similarities, similarity, word_hashes

MAKER = Fingerprinter()


def text(*numbers: int) -> str:
    return " ".join(f"word{number}" for number in numbers)


def test_golden() -> None:
    """Stored fingerprints must stay comparable: a change here is a new scheme."""
    found = MAKER.of("The quick brown fox jumps over the lazy dog. " * 2 + "Ünïcödé 漢字 words, too.")
    assert MAKER.scheme == "affine32/seed1/perm128/bands16/words5"
    assert found.words == 23
    assert found.text_checksum == GOLDEN_CHECKSUM
    assert found.signature is not None
    assert found.signature[:8].hex() == GOLDEN_SIGNATURE
    assert found.bands[:2] == GOLDEN_BANDS
    assert payload_checksum(b"abc") == 8696274497037089104


GOLDEN_CHECKSUM = 7838657280557764668
GOLDEN_SIGNATURE = "eca80be0e78cb28a"
GOLDEN_BANDS = [7474537394957762742, 3012938275922725789]


@pytest.mark.parametrize("permutations", [16, 128, 256])
@pytest.mark.parametrize("count", [1, 100, 5_000])
def test_minima_are_those_of_datasketch(permutations: int, count: int) -> None:
    hashes = np.random.default_rng(7).integers(0, 1 << 32, count, dtype=np.uint32)
    oracle = MinHash(permutations, seed=3, hashfunc=int, scheme="affine32")
    oracle.update_batch(hashes)
    minima = Fingerprinter(permutations, 8, seed=3).minima(hashes)
    assert np.array_equal(minima, oracle.hashvalues)


def test_signature_is_the_low_byte_of_the_minima_of_the_shingles() -> None:
    words = text(*range(300))
    oracle = MinHash(128, seed=1, hashfunc=int)
    oracle.update_batch(MAKER.shingles(word_hashes(words)))
    assert MAKER.of(words).signature == bytes(int(value) & 0xFF for value in oracle.hashvalues)


def test_shingles_are_the_runs_of_five_words() -> None:
    def hashed(*numbers: int) -> Sequence[int]:
        return list(map(int, MAKER.shingles(word_hashes(text(*numbers)))))

    assert hashed(1, 2, 3, 4, 5, 6, 7) == [*hashed(1, 2, 3, 4, 5), *hashed(2, 3, 4, 5, 6), *hashed(3, 4, 5, 6, 7)]
    assert hashed(1, 2, 3, 4, 5) != hashed(2, 1, 3, 4, 5)
    assert len(hashed(1, 2)) == 1
    assert len(set(hashed(*range(20_000)))) > 19_990


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("a B\n c\t\td", " A b C D ", True),
        ("a\xa0b c d", "a b c d", True),
        ("STRASSE b c d", "straße b c d", True),
        ("漢字 b c", "漢 字 b c", True),
        ("漢　字 b c", "漢 字 b c", True),
        ("a b c d", "a b d c", False),
        ("ab c d e", "a bc d e", False),
    ],
)
def test_the_checksum_is_that_of_the_words(one: str, other: str, same: bool) -> None:
    maker = Fingerprinter(min_words=3)
    checksums = [maker.of(words).text_checksum for words in (one, other)]
    assert None not in checksums
    assert (checksums[0] == checksums[1]) is same


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ("", 0),
        (" \n", 0),
        ("one two", 2),
        ("漢字かな交じり", 7),
        ("สวัสดี", 6),
        ("안녕 하세요", 2),
        ("naïve café", 2),
        ("a　漢", 2),
    ],
)
def test_words(words: str, count: int) -> None:
    assert MAKER.of(words).words == count


def test_short_texts_have_no_fingerprint() -> None:
    assert MAKER.of(text(*range(19))) == fingerprint.Fingerprint(19)
    assert MAKER.of(text(*range(20))).text_checksum is not None


@given(st.text(max_size=300))
def test_blocks_change_nothing(words: str) -> None:
    maker = Fingerprinter(min_words=1)
    whole = (list(word_hashes(words)), maker.of(words))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fingerprint, "_BLOCK_CHARS", 7)
        patch.setattr(fingerprint, "_BLOCK_SHINGLES", 3)
        assert (list(word_hashes(words)), maker.of(words)) == whole


def pairs() -> list[tuple[float, str, str]]:
    """Pairs of texts of 400 words that differ in more and more places, with the exact Jaccard of their shingles."""
    chance = random.Random(11)
    found = []
    for changes in range(0, 60, 2):
        for _ in range(4):
            one = [chance.randrange(10**9) for _ in range(400)]
            other = list(one)
            for _ in range(changes):
                other[chance.randrange(400)] = chance.randrange(10**9)
            sets = [{tuple(words[at : at + 5]) for at in range(396)} for words in (one, other)]
            found.append((len(sets[0] & sets[1]) / len(sets[0] | sets[1]), text(*one), text(*other)))
    return found


PAIRS = pairs()


def test_similarity_estimates_the_exact_jaccard() -> None:
    errors = []
    for exact, one, other in PAIRS:
        signatures = [MAKER.of(words).signature for words in (one, other)]
        assert signatures[0] is not None
        assert signatures[1] is not None
        errors.append(similarity(signatures[0], signatures[1]) - exact)
    assert abs(np.mean(errors)) < 0.015  # unbiased
    assert np.std(errors) < 0.045  # sqrt(s (1 - s) / 128), 0.044 at its most
    assert max(map(abs, errors)) < 0.15


def test_bands_find_candidates_as_their_curve_says() -> None:
    expected = sum(1 - (1 - exact**8) ** 16 for exact, _, _ in PAIRS)
    found = sum(not set(MAKER.of(one).bands).isdisjoint(MAKER.of(other).bands) for _, one, other in PAIRS)
    assert abs(found - expected) < 3 * np.sqrt(len(PAIRS) * 0.25)
    assert all(
        not set(MAKER.of(one).bands).isdisjoint(MAKER.of(other).bands) for exact, one, other in PAIRS if exact > 0.9
    )


def test_bands_differ_by_their_number() -> None:
    assert len(set(MAKER._band_keys(np.zeros(128, np.uint32)))) == 16


def test_similarities_of_many() -> None:
    signatures = [MAKER.of(text(*range(start, start + 200))).signature or b"" for start in (0, 20, 1_000)]
    many = np.frombuffer(b"".join(signatures), np.uint8).reshape(3, -1)
    found = similarities(many, signatures[0])
    assert found[0] == 1.0
    assert 0.7 < found[1] < 0.95
    assert found[2] < 0.05
    assert list(found) == [similarity(signature, signatures[0]) for signature in signatures]


def test_chance_agreement_of_low_bytes_is_taken_out() -> None:
    one = bytes(range(256))
    halves = bytes(range(128)) + bytes(value ^ 1 for value in range(128, 256))
    by_chance = bytes([0]) + bytes(value ^ 1 for value in range(1, 256))
    assert similarity(one, halves) == pytest.approx(127 / 255)
    assert similarity(one, by_chance) == 0.0


def test_bands_must_divide_the_permutations() -> None:
    with pytest.raises(ValueError, match="bands: 10 does not divide 128 permutations"):
        Fingerprinter(128, 10)
