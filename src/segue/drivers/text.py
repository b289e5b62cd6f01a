"""Text that is too long."""


def shortened(text: str, limit: int) -> str:
    """Return a text; of a too long one the beginning and the end with the number of characters left out."""
    if len(text) <= limit:
        return text
    half = limit // 2
    # Between words: half a secret would not be recognised as one.
    head = text[:half].rsplit(maxsplit=1)[0]
    tail = text[-half:].split(maxsplit=1)[-1]
    return f"{head}\n[… {len(text) - len(head) - len(tail)} characters left out …]\n{tail}"
