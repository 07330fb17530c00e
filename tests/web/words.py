"""Text for made-up pages: a seeded vocabulary whose words come as often as Zipf's law says."""

from __future__ import annotations

from array import array
from random import Random


def listed(text: str) -> list[str]:
    """The words of a list that is written as a sentence."""
    return text.split()


STOP_WORDS = listed(
    "the of and to a in is that it was for on are as with they at be this from have or by one had not but what all "
    "were when we there can an your which their said if do will each about how up out them then she many some so"
)
_STARTS = listed("b br d dr f fl g gr h l m n p pl r s st t th tr v w")
_VOWELS = listed("a e i o u a e i o u ai ea ou")
_ENDS = listed("l m n nd nt r rd rn s st t")
_TABLE_SIZE = 65_536
_SENTENCE_LENGTHS = (9, 14, 6, 17, 11, 8, 21, 12, 10, 15, 7)


class Prose:
    """Words, sentences and paragraphs, each a function of the seed and a key."""

    def __init__(self, seed: int, vocabulary: int = 6_000) -> None:
        self.seed = seed
        self.vocabulary = _vocabulary(Random(f"vocabulary {seed}"), vocabulary)
        self.names = [word for word in self.vocabulary[200:2_000] if len(word) >= 4]
        self._table = _zipf_table(self.vocabulary)

    def random(self, *key: object) -> Random:
        """A source of chance that belongs to the key."""
        return Random(f"{self.seed} {' '.join(map(str, key))}")

    def words(self, random: Random, count: int) -> list[str]:
        table = self._table
        return [table[draw] for draw in array("H", random.randbytes(2 * count))]

    def phrase(self, random: Random, count: int) -> str:
        """Content words only, as for titles, link texts and paths."""
        return " ".join(random.choices(self.names, k=count))

    def paragraphs(self, words: list[str]) -> list[str]:
        """The words, in order, as sentences in paragraphs of five."""
        sentences, start, turn = [], 0, len(words)
        while start < len(words):
            length = _SENTENCE_LENGTHS[turn % len(_SENTENCE_LENGTHS)]
            sentences.append(" ".join(words[start : start + length]).capitalize() + ".")
            start, turn = start + length, turn + 1
        return [" ".join(sentences[i : i + 5]) for i in range(0, len(sentences), 5)]


def _vocabulary(random: Random, count: int) -> list[str]:
    words = dict.fromkeys(STOP_WORDS)
    while len(words) < count:
        syllables = random.choice((1, 2, 2, 3, 3, 4))
        word = "".join(random.choice(part) for _ in range(syllables) for part in (_STARTS, _VOWELS))
        words[word + random.choice(_ENDS) if random.random() < 0.6 else word] = None
    return list(words)


def _zipf_table(vocabulary: list[str]) -> list[str]:
    """One entry for each 16-bit number; the word of rank r has a share of about 1 / (r + 2.7) (Mandelbrot)."""
    weights = [1 / (rank + 2.7) for rank in range(len(vocabulary))]
    scale = _TABLE_SIZE / sum(weights)
    entries = [max(1, round(weight * scale)) for weight in weights]
    table = [word for word, count in zip(vocabulary, entries, strict=True) for _ in range(count)]
    return (table + vocabulary * (_TABLE_SIZE // len(vocabulary) + 1))[:_TABLE_SIZE]
