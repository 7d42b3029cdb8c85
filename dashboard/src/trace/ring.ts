import type { Item } from "./entry";

/** The newest items, up to a number; counts all there ever were. */
export class Ring {
  readonly #capacity: number;
  #items: Item[] = [];
  #total = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  push(item: Item): void {
    this.#items.push(item);
    this.#total += 1;
    // thrown away by halves, as moving all of them for each one would be most of the work
    if (this.#items.length >= 2 * this.#capacity) this.#items = this.#items.slice(-this.#capacity);
  }

  clear(): void {
    this.#items = [];
  }

  /** Forgets what came after the first `total`, as far as it is still here; it counts on from where it is. */
  forgetSince(total: number): void {
    const count = Math.min(this.#items.length, this.#total - total);
    this.#items.length -= count;
  }

  get total(): number {
    return this.#total;
  }

  /** A copy, oldest first. */
  snapshot(): readonly Item[] {
    return this.#items.slice(-this.#capacity);
  }
}
