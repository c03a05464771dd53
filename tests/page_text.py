"""Pages as a reader finds them: elements, and the text that is neither script nor style."""

from html.parser import HTMLParser

VOID = frozenset({"meta", "br", "wbr", "line", "circle", "rect", "polyline"})


class Reader(HTMLParser):
    """Every element with its attributes, and the text; an element that is not closed is an error."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in {"style", "script"}:
            self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of each of these elements."""
        return [attributes for name, attributes in self.elements if name == tag]


def page_text(page: str) -> str:
    """The text of a page without scripts and styles, each white space as one space."""
    return " ".join(Reader(page).text.split())
