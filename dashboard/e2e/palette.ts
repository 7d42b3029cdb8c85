import { crc32, deflateSync, inflateSync } from "node:zlib";

// what a pixel of Playwright's pictures has: red, green, blue, and perhaps how opaque it is, always a byte each
const COLOURS = 256;
// squared distances of the three parts, summed: what the eye does not see in the edges of letters
const APART = 90;
const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

interface Picture {
  width: number;
  height: number;
  /** One number per pixel, 0xRRGGBB. */
  pixels: Uint32Array;
}

/** The same PNG with at most 256 colours, which is a third of its size: the nearest of the most frequent ones. */
export function withPalette(png: Buffer): Buffer {
  const { width, height, pixels } = decode(png);
  const counts = new Map<number, number>();
  for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
  const sorted = [...counts].toSorted((a, b) => b[1] - a[1] || a[0] - b[0]).map(([colour]) => colour);
  const palette: number[] = [];
  // hardly different shades of frequent colours would leave no room for rare ones
  for (const colour of sorted) if (palette.length < COLOURS && nearest(palette, colour).apart >= APART) palette.push(colour);
  const index = new Map(sorted.map((colour) => [colour, nearest(palette, colour).at]));
  const rows = Buffer.alloc((width + 1) * height);
  for (const [at, pixel] of pixels.entries()) rows[at + Math.floor(at / width) + 1] = index.get(pixel) ?? 0;
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 3, 0, 0, 0], 8);
  const colours = Buffer.from(palette.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]));
  const parts = [chunk("IHDR", head), chunk("PLTE", colours), chunk("IDAT", deflateSync(rows, { level: 9, memLevel: 9 })), chunk("IEND", Buffer.alloc(0))];
  return Buffer.concat([SIGNATURE, ...parts]);
}

function chunk(type: string, data: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const check = Buffer.alloc(4);
  check.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, check]);
}

function nearest(palette: readonly number[], colour: number): { at: number; apart: number } {
  let [best, least] = [0, Number.POSITIVE_INFINITY];
  for (const [at, other] of palette.entries()) {
    const apart = [16, 8, 0].reduce((sum, shift) => sum + (((colour >> shift) & 255) - ((other >> shift) & 255)) ** 2, 0);
    if (apart < least) [best, least] = [at, apart];
  }
  return { at: best, apart: least };
}

function decode(png: Buffer): Picture {
  const [width, height, depth, type, interlaced] = [png.readUInt32BE(16), png.readUInt32BE(20), png[24], png[25], png[28]];
  if (depth !== 8 || (type !== 2 && type !== 6) || interlaced !== 0) throw new Error("not a picture as Chromium makes them");
  const data: Buffer[] = [];
  for (let at = SIGNATURE.length; at < png.length; ) {
    const length = png.readUInt32BE(at);
    if (png.toString("latin1", at + 4, at + 8) === "IDAT") data.push(png.subarray(at + 8, at + 8 + length));
    at += length + 12;
  }
  const size = type === 2 ? 3 : 4;
  const bytes = unfilter(inflateSync(Buffer.concat(data)), width * size, size);
  const pixels = new Uint32Array(width * height);
  for (let at = 0; at < pixels.length; at += 1) pixels[at] = bytes.readUIntBE(at * size, 3);
  return { width, height, pixels };
}

/** Takes back what each row was filtered with: the difference to its left, to the row above, or to a guess from both. */
function unfilter(filtered: Buffer, stride: number, size: number): Buffer {
  const height = filtered.length / (stride + 1);
  const bytes = Buffer.alloc(stride * height);
  for (let y = 0; y < height; y += 1) {
    const filter = filtered[y * (stride + 1)] ?? 0;
    for (let x = 0; x < stride; x += 1) {
      const here = y * stride + x;
      const left = x < size ? 0 : (bytes[here - size] ?? 0);
      const above = y === 0 ? 0 : (bytes[here - stride] ?? 0);
      const corner = x < size || y === 0 ? 0 : (bytes[here - stride - size] ?? 0);
      const guess = [0, left, above, (left + above) >> 1, paeth(left, above, corner)][filter] ?? 0;
      bytes[here] = (filtered[y * (stride + 1) + 1 + x] ?? 0) + guess;
    }
  }
  return bytes;
}

function paeth(left: number, above: number, corner: number): number {
  const guess = left + above - corner;
  const [a, b, c] = [Math.abs(guess - left), Math.abs(guess - above), Math.abs(guess - corner)];
  if (a <= b && a <= c) return left;
  return b <= c ? above : corner;
}
