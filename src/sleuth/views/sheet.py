"""A sheet of text of fixed width: wrapped by what characters really take on a screen, with styles on the side."""

import shutil
import sys
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TextIO

from rich.cells import cell_len, chop_cells, set_cell_size

WIDTH = 80
# Below this, wrapping makes a column of single words.
NARROWEST = 40

# What a terminal would obey instead of showing: control, direction and half characters, and private ones.
UNSHOWN = ("Cc", "Cf", "Cs", "Co", "Cn")


@dataclass(frozen=True)
class Span:
    text: str
    style: str = ""  # in rich's words: "bold red"


@dataclass(frozen=True)
class Sheet:
    width: int = WIDTH
    lines: list[tuple[Span, ...]] = field(default_factory=list)

    def blank(self) -> None:
        if self.lines and self.lines[-1]:
            self.lines.append(())

    def row(self, *spans: Span) -> None:
        """One line as it is; what does not fit is wrapped, without its styles."""
        spans = tuple(Span(clean(s.text), s.style) for s in spans)
        text = "".join(s.text for s in spans)
        if cell_len(text) <= self.width:
            self.lines.append(spans)
        else:
            self.paragraph(text.strip(), indent=len(text) - len(text.lstrip()))

    def paragraph(self, text: str, *, indent: int = 0, label: str = "", style: str = "", label_style: str = "bold") -> None:
        """Wrapped; under a label the lines hang."""
        hanging = indent + cell_len(label)
        for i, line in enumerate(wrap(text, self.width - hanging)):
            head = Span(" " * indent + label, label_style) if i == 0 and label else Span(" " * hanging)
            self.lines.append((head, Span(line, style)))

    def plain(self) -> str:
        return "\n".join("".join(s.text for s in line).rstrip() for line in self.lines)

    def coloured(self) -> str:
        """With the escape codes that standard output understands; plain where a person has switched colour off."""
        from rich.console import Console
        from rich.text import Text

        text = Text("\n").join(Text.assemble(*((s.text, s.style) for s in line)) for line in self.lines)
        console = Console(highlight=False)
        with console.capture() as capture:
            console.print(text, end="", soft_wrap=True)
        return capture.get()


def clean(text: str) -> str:
    """Characters that would move the cursor, change the colour or turn the reading direction are shown as �."""
    return "".join("�" if unicodedata.category(c) in UNSHOWN else c for c in text)


def wrap(text: str, width: int) -> list[str]:
    lines: list[str] = []
    for word in clean(" ".join(text.split())).split():
        if lines and cell_len(lines[-1]) + 1 + cell_len(word) <= width:
            lines[-1] += " " + word
        else:
            lines += chop_cells(word, width) if cell_len(word) > width else [word]
    return lines


def shorten(text: str, width: int) -> str:
    text = clean(text)
    return text if cell_len(text) <= width else set_cell_size(text, width - 1).rstrip() + "…"


def shorten_start(text: str, width: int) -> str:
    """For paths, whose end says most."""
    return shorten(text[::-1], width)[::-1]


def for_screen(write: Callable[[int], Sheet], stream: TextIO | None = None) -> str:
    """In colour and as narrow as the window where a person looks at it; else plain and of the usual width."""
    stream = stream or sys.stdout
    if not stream.isatty():
        return speakable(write(WIDTH).plain(), stream.encoding)
    width = max(NARROWEST, min(WIDTH, shutil.get_terminal_size().columns))
    return speakable(write(width).coloured(), stream.encoding)


def speakable(text: str, encoding: str | None) -> str:
    """The same text in characters that the output can write: ✓ becomes + on a console that knows no ✓."""
    encoding = encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(SUBSTITUTES).encode(encoding, "replace").decode(encoding)
    except LookupError:  # an encoding that Python does not know: let the stream decide
        return text
    return text


SUBSTITUTES = str.maketrans({"✗": "x", "✓": "+", "–": "-", "·": "|", "→": "->", "…": "...", "×": "x", "�": "?"})
