"""A stand-in for terminaltables: one row a line."""


class AsciiTable:
    def __init__(self, rows: list[list[str]]) -> None:
        self.table = "\n".join(" | ".join(row) for row in rows)
