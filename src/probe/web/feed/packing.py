"""gzip (RFC 1952) for readers who get the same texts in different orders: each text is packed once for all of them.

A gzip member is a header, blocks of deflate (RFC 1951), and at its end the CRC-32 and the size of the whole text.
Blocks may refer to the 32 KiB of text before them. Those of a `Packer` do not: each text ends with a full flush, so the
blocks of any texts in any order are one stream.

The checksum of a stream is made of those of its texts, so that nobody reads them again. A CRC is the remainder of the
text, as a polynomial over GF(2), divided by a fixed polynomial. To append n bytes multiplies what was there by x^(8n)
and adds them, so, modulo that polynomial and with an exclusive or for the sum,

    crc(a + b) = crc(a) * x^(8 * len(b)) + crc(b)

This also holds for the CRC-32 of gzip, which inverts the first 32 bits of a text and its remainder: these inversions
cancel out. Each text keeps its x^(8n), which takes some dozens of products to make; a reader takes one product for each
chunk.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from typing import Final, NamedTuple

PACKED_BEGIN: Final = bytes.fromhex("1f8b08000000000004ff")
"""The header of gzip, before the first text of a `Packer`."""

# Beyond this packing would take more than some 3 ms at once: one huge entry goes as it is.
_WORTH_PACKING: Final = 256 * 1024

# A last block of deflate, with nothing in it.
_LAST_BLOCK: Final = bytes.fromhex("0300")

# The polynomial of the checksum. As everywhere in gzip the highest bit is the coefficient of x^0.
_POLYNOMIAL: Final = 0xEDB88320
_ONE: Final = 1 << 31


class PackedText(NamedTuple):
    """A text in whole blocks of deflate, with the checksum of the text.

    `shift` is what a checksum is multiplied by when this text follows.
    """

    blocks: bytes
    size: int
    checksum: int
    shift: int


class Packer:
    """Packs texts so that they refer to nothing before them: any of them, one after the other, are one stream."""

    def __init__(self) -> None:
        # A compressor takes 256 KiB, and to make one takes longer than to pack a short text.
        self._compressor = zlib.compressobj(1, zlib.DEFLATED, -zlib.MAX_WBITS)

    def pack(self, text: bytes) -> PackedText:
        """Pack one text."""
        worth = len(text) <= _WORTH_PACKING
        compressor = self._compressor if worth else zlib.compressobj(0, zlib.DEFLATED, -zlib.MAX_WBITS)
        # A full flush ends the last block, and the compressor forgets what it has seen.
        blocks = compressor.compress(text) + compressor.flush(zlib.Z_FULL_FLUSH)
        return PackedText(blocks, len(text), zlib.crc32(text), _shift(len(text)))


def joined(texts: Iterable[PackedText]) -> PackedText:
    """Texts one after the other; none of them is read again."""
    blocks, size, checksum, shift = list[bytes](), 0, 0, _ONE
    for text in texts:
        blocks.append(text.blocks)
        size += text.size
        checksum = _product(text.shift, checksum) ^ text.checksum
        shift = _product(text.shift, shift)
    return PackedText(b"".join(blocks), size, checksum, shift)


class PackedEnd:
    """The end of a reader's stream: the last block, and checksum and size of all texts before it."""

    def __init__(self) -> None:
        self._checksum = 0
        self._size = 0

    def count(self, text: PackedText) -> None:
        """A text was sent."""
        self._checksum = _product(text.shift, self._checksum) ^ text.checksum
        self._size += text.size

    def encoded(self) -> bytes:
        """The last bytes of the gzip member."""
        return _LAST_BLOCK + struct.pack("<II", self._checksum, self._size % 2**32)


def _product(left: int, right: int) -> int:
    """The product of two polynomials, modulo that of the checksum."""
    product = 0
    while left:
        if left & _ONE:
            product ^= right
        left = left << 1 & 0xFFFFFFFF
        right = right >> 1 ^ _POLYNOMIAL if right & 1 else right >> 1
    return product


def _squares() -> list[int]:
    """x^8, x^16, x^32 and so on."""
    power, powers = 1 << 23, list[int]()
    for _ in range(64):
        powers.append(power)
        power = _product(power, power)
    return powers


_SQUARES: Final = _squares()


def _shift(size: int) -> int:
    """x to the power of eight times `size`: what so many bytes behind a text make of its checksum."""
    shift = _ONE
    for bit in range(size.bit_length()):
        if size >> bit & 1:
            shift = _product(_SQUARES[bit], shift)
    return shift
