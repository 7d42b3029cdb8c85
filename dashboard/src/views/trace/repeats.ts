import { endingOf, askedBy } from "./exchange-text";
import { type Exchange, type WireLine, factsOf } from "./exchanges";
import type { Known } from "./known";

/** Exchanges of one client that ended in the same way, as one line: the first and the last tell since when and until when. */
export interface Repeat {
  type: "repeat";
  key: string;
  exchanges: readonly Exchange[];
}

/** Lines with those that are equal but for numbers and names put together, in the places of their first. */
export function repeated(lines: readonly WireLine[], known: Known): readonly (WireLine | Repeat)[] {
  const groups = new Map<string, Exchange[]>();
  const found: (WireLine | Exchange[])[] = [];
  for (const line of lines) {
    if (line.type !== "exchange") {
      found.push(line);
      continue;
    }
    const mark = signature(line.exchange, known);
    const group = groups.get(mark);
    if (group === undefined) {
      const begun = [line.exchange];
      groups.set(mark, begun);
      found.push(begun);
    } else {
      group.push(line.exchange);
    }
  }
  return found.map((each) => {
    if (!Array.isArray(each)) return each;
    const [first] = each;
    if (first === undefined) throw new Error("a group has an exchange");
    return each.length === 1 ? { type: "exchange", key: first.key, exchange: first } : { type: "repeat", key: `${first.key}-repeated`, exchanges: each };
  });
}

/** What equal lines have in common: ids and amounts differ from one to the next. */
function signature(exchange: Exchange, known: Known): string {
  const { session, head, response } = factsOf(exchange);
  const { mark, text } = endingOf(exchange);
  const { method, rpc } = askedBy(exchange, known.relations(exchange.run).methodOf(factsOf(exchange).head));
  const same = text.replaceAll(/'[^']*'|"[^"]*"|\d+(?:\.\d+)?/g, "…");
  return JSON.stringify([exchange.run, session, head.kind, method, rpc, response?.status ?? null, mark?.text ?? null, same]);
}
