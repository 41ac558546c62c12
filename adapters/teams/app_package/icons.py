"""The app's icons, drawn from the same shape as the web page's (adapters/web/static/icon.svg).

Drawn when the package is made: the code is what can be read and changed, and no picture can be older than it.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass

COLOUR_SIZE = 192
"""Pixels (Teams: 192 × 192, and what must not be cut off within the middle 120 × 120)."""
OUTLINE_SIZE = 32
"""Pixels (Teams: 32 × 32, white on transparent)."""

INDIGO = (0x4B, 0x53, 0xD8)
WHITE = (0xFF, 0xFF, 0xFF)

Point = tuple[float, float]
Pixel = tuple[int, int, int, int]
"""Red, green, blue and opacity, 0 to 255."""


@dataclass(frozen=True, slots=True)
class Stroke:
    """A line with round ends."""

    points: tuple[Point, ...]
    width: float

    def covers(self, x: float, y: float, scale: float) -> float:
        """How much of the pixel around a point it covers, 0 to 1; one pixel is `1 / scale` wide."""
        nearest = min(_distance((x, y), *ends) for ends in zip(self.points, self.points[1:], strict=False))
        return min(1.0, max(0.0, (self.width / 2 - nearest) * scale + 0.5))


TICK = Stroke(((8.5, 16.8), (13.1, 21.4), (23.5, 10.9)), width=3.2)
SIGNATURE = Stroke(((9.0, 25.4), (23.0, 25.4)), width=2.0)
"""A stroke in the units of icon.svg, which is 32 wide and high."""
FAINT = 0.55
"""Opacity of the signature where there are colours."""
_MIDDLE = (16.0, 17.4)
"""Middle of the two strokes together."""


def colour_icon() -> bytes:
    """The icon that Teams shows beside the bot's name: a PNG. Teams rounds its corners."""
    scale = 120 / 24

    def pixel(x: float, y: float) -> Pixel:
        at = _unit(x, y, scale, COLOUR_SIZE)
        covered = max(TICK.covers(*at, scale), FAINT * SIGNATURE.covers(*at, scale))
        red, green, blue = (round(w * covered + i * (1 - covered)) for w, i in zip(WHITE, INDIGO, strict=True))
        return red, green, blue, 255

    return png(COLOUR_SIZE, pixel)


def outline_icon() -> bytes:
    """The icon for narrow places, white on nothing: a PNG."""
    scale = OUTLINE_SIZE / 22

    def pixel(x: float, y: float) -> Pixel:
        at = _unit(x, y, scale, OUTLINE_SIZE)
        return *WHITE, round(255 * max(TICK.covers(*at, scale), SIGNATURE.covers(*at, scale)))

    return png(OUTLINE_SIZE, pixel)


def _unit(x: float, y: float, scale: float, size: int) -> Point:
    """Where a pixel is in the units of the strokes, which stand in the middle."""
    return (x - size / 2) / scale + _MIDDLE[0], (y - size / 2) / scale + _MIDDLE[1]


def _distance(point: Point, begin: Point, end: Point) -> float:
    along = (end[0] - begin[0], end[1] - begin[1])
    to = (point[0] - begin[0], point[1] - begin[1])
    share = (along[0] * to[0] + along[1] * to[1]) / (along[0] ** 2 + along[1] ** 2)
    share = min(1.0, max(0.0, share))
    return math.hypot(to[0] - share * along[0], to[1] - share * along[1])


def png(size: int, pixel: Callable[[float, float], Pixel]) -> bytes:
    """A square picture as a PNG (https://www.w3.org/TR/png-3/), from a function of the middle of each pixel."""
    middles = [at + 0.5 for at in range(size)]
    rows = b"".join(b"\0" + b"".join(bytes(pixel(x, y)) for x in middles) for y in middles)
    eight_bits_with_opacity = struct.pack(">IIBBBBB", size, size, 8, 6, 0, 0, 0)
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", eight_bits_with_opacity),
            _chunk(b"IDAT", zlib.compress(rows, 9)),
            _chunk(b"IEND", b""),
        )
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
