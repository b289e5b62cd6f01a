"""Pictures that people attach to a prompt."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from segue.model.errors import BadInput

LARGEST = 5_000_000
"""Maximum bytes of one picture; vendors accept no larger ones."""
MOST = 5
"""Maximum number of pictures of one prompt."""
LONGEST_NAME = 100

_BEGINNINGS = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """Description of a picture in the journal; the bytes are stored beside the events, by their hash."""

    name: str
    media_type: str
    sha256: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """PNG, JPEG, GIF or WebP of 5 MB at most, as the sender named it."""

    name: str = "picture"
    data: bytes = field(repr=False)


def pictures_of(shown: Sequence[Shown]) -> tuple[Picture, ...]:
    """Return the descriptions of a prompt's pictures; raise BadInput if there are too many or one cannot be shown."""
    if len(shown) > MOST:
        raise BadInput(f"{MOST} pictures go with one prompt at most, not {len(shown)}.", hint="Show the others after.")
    return tuple(map(_picture, shown))


def _picture(shown: Shown) -> Picture:
    """Return the description of one picture, its type read from the bytes; raise BadInput if it is too large or
    none."""
    name = _one_line(shown.name)
    if len(shown.data) > LARGEST:
        size = f"{len(shown.data) / 1e6:,.1f} MB"
        raise BadInput(f"The picture {name} is too large: {size}, and {LARGEST / 1e6:g} MB is the most.")
    media_type = _media_type(shown.data)
    if media_type is None:
        raise BadInput(f"{name} is no picture that can be shown.", hint="Those are PNG, JPEG, GIF and WebP.")
    return Picture(name=name, media_type=media_type, sha256=sha256(shown.data).hexdigest(), size=len(shown.data))


def _media_type(data: bytes) -> str | None:
    """Return the media type of an image by its first bytes, or None if the type is not supported."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for kind, beginnings in _BEGINNINGS.items() if data.startswith(beginnings)), None)


def _one_line(name: str) -> str:
    """Return a picture's name on one line, cut; `picture` if nothing is left."""
    words = "".join(each if each.isprintable() else " " for each in name).split()
    return " ".join(words)[:LONGEST_NAME] or "picture"


def with_names(text: str, pictures: Sequence[Picture]) -> str:
    """Return the text with the pictures' names appended for readers who cannot see them; without pictures as it is."""
    return "\n".join([text.rstrip(), "", *(f"[Picture: {each.name}]" for each in pictures)]) if pictures else text
