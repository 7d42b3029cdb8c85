/** A list in the order of a number that each item has to itself. Most items come at its end. */
export class Sorted<Item> {
  #items: Item[] = [];
  #copy: readonly Item[] = [];
  readonly #numberOf: (item: Item) => number;

  constructor(numberOf: (item: Item) => number) {
    this.#numberOf = numberOf;
  }

  /** Adds an item, or puts it in the place of the one with its number. */
  put(item: Item): void {
    const number = this.#numberOf(item);
    const last = this.#items.at(-1);
    const at = last === undefined || this.#numberOf(last) < number ? this.#items.length : indexOf(this.#items, number, this.#numberOf);
    const there = this.#items[at];
    const same = there !== undefined && this.#numberOf(there) === number;
    if (at === this.#items.length) this.#items.push(item);
    else this.#items.splice(at, same ? 1 : 0, item);
    this.#copy = NONE;
  }

  get size(): number {
    return this.#items.length;
  }

  /** Keeps those that pass, and gives the others. */
  keep(passes: (item: Item) => boolean): readonly Item[] {
    const gone: Item[] = [];
    this.#items = this.#items.filter((item) => passes(item) || (gone.push(item), false));
    if (gone.length > 0) this.#copy = NONE;
    return gone;
  }

  /** The item at a place, from 0. */
  at(place: number): Item | undefined {
    return this.#items.at(place);
  }

  /** All of them in their order: the same list until something changes. */
  get all(): readonly Item[] {
    if (this.#copy.length !== this.#items.length) this.#copy = this.#items.slice();
    return this.#copy;
  }
}

const NONE: readonly never[] = [];

/** The place of the first item whose number is not smaller. */
export function indexOf<Item>(items: readonly Item[], number: number, numberOf: (item: Item) => number): number {
  let [low, high] = [0, items.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    const item = items[middle];
    if (item !== undefined && numberOf(item) < number) low = middle + 1;
    else high = middle;
  }
  return low;
}
