"""Text as a picture, for `render_mode="rgb_array"` and so for Gymnasium's `RecordVideo`.

Every picture has the same size, because frames of one video must. Needs Pillow, which the extra `video` installs.

A picture may not show everything: characters outside Latin-1 become question marks, and if a text is too long for the
picture, its middle lines are left out and the picture says so.
"""

from __future__ import annotations

import textwrap

import numpy as np
import numpy.typing as npt

from codea1_env.extras import extra

COLUMNS = 100
"""Characters in a line."""
LINES = 50
_LETTER = (6, 11)  # pixels, width and height, of Pillow's built-in font; all its letters are as wide
_MARGIN = 10
_SCALE = 2
_INK, _PAPER = 20, 250  # of 255

Picture = npt.NDArray[np.uint8]


def require_pillow() -> None:
    """Raise ImportError that names the extra, when an environment is made and not in the middle of an episode."""
    with extra("video", 'render_mode="rgb_array" needs'):
        import PIL.ImageDraw
        import PIL.ImageFont  # noqa: F401


def picture(text: str) -> Picture:
    """The text in black on white, (height, width, 3). Both sides are even, as video codecs want them."""
    from PIL import Image, ImageDraw, ImageFont

    width, height = (n * size + 2 * _MARGIN for n, size in zip((COLUMNS, LINES), _LETTER, strict=True))
    sheet = Image.new("L", (width, height), _PAPER)
    canvas, font = ImageDraw.Draw(sheet), ImageFont.load_default_imagefont()
    for number, line in enumerate(fitted(text)):
        shown = line.encode("latin-1", "replace").decode("latin-1")
        canvas.text((_MARGIN, _MARGIN + number * _LETTER[1]), shown, fill=_INK, font=font)
    grey = np.asarray(sheet).repeat(_SCALE, axis=0).repeat(_SCALE, axis=1)  # (height, width)
    return np.stack([grey] * 3, axis=2)


def fitted(text: str) -> list[str]:
    """At most LINES lines of at most COLUMNS characters."""
    lines = [
        part
        for line in text.expandtabs(4).split("\n")
        for part in textwrap.wrap(line, COLUMNS, drop_whitespace=False, replace_whitespace=False) or [""]
    ]
    if len(lines) <= LINES:
        return lines
    first, last = LINES // 2, LINES - LINES // 2 - 1
    return [*lines[:first], f"... {len(lines) - first - last} lines are left out here ...", *lines[-last:]]
