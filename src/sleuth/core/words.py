"""English around the words that users bring."""

# Said with a vowel at the beginning, though written without one.
SPOKEN = ("ndarray", "nparray", "rnn", "lstm", "mlp", "sgd")


def with_article(word: str) -> str:
    """a list, an int, an ndarray."""
    said_with_vowel = word[:1].lower() in tuple("aeiou") or word.lower().startswith(SPOKEN)
    return f"an {word}" if said_with_vowel else f"a {word}"


def kind_of(thing: object) -> str:
    """What a value is, in words: a list, an int, None."""
    return "None" if thing is None else with_article(type(thing).__name__)


def counted(count: int, noun: str) -> str:
    """1 layer, 2 layers."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def size(number: float) -> str:
    """Of memory, such as 1.5 GB."""
    for unit, least in (("TB", 1 << 40), ("GB", 1 << 30), ("MB", 1 << 20), ("kB", 1 << 10)):
        if number >= least:
            return f"{number / least:.3g} {unit}"
    return f"{number:.0f} bytes"
