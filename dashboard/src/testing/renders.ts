/** The parts of a fiber of React that its own tools read, too. */
interface Fiber {
  type: { name?: string } | string | null;
  flags: number;
  child: Fiber | null;
  sibling: Fiber | null;
  alternate: Fiber | null;
}

interface Hook {
  supportsFiber: boolean;
  inject: (renderer: unknown) => number;
  onCommitFiberRoot: (id: number, root: { current: Fiber }, ...more: unknown[]) => void;
  onCommitFiberUnmount: () => void;
}

// `PerformedWork`: the component was called
const CALLED = 1;

const counts = new Map<string, number>();

function count(fiber: Fiber): void {
  const { type, alternate } = fiber;
  if (typeof type === "function" && (fiber.flags & CALLED) !== 0) {
    const { name = "" } = type as { name?: string };
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  // what React has not come to has the same children as before
  if (alternate !== null && alternate.child === fiber.child) return;
  for (let child = fiber.child; child !== null; child = child.sibling) if (child !== alternate) count(child);
}

const NAME = "__REACT_DEVTOOLS_GLOBAL_HOOK__";

/** Has React say what it calls; before React is loaded, which looks for this hook once. */
export function countRenders(): void {
  const page = globalThis as { [NAME]?: Hook };
  const known = page[NAME];
  const hook: Hook = known ?? { supportsFiber: true, inject: () => 1, onCommitFiberRoot: () => undefined, onCommitFiberUnmount: () => undefined };
  const before = hook.onCommitFiberRoot;
  hook.onCommitFiberRoot = (id, root, ...more) => {
    before.call(hook, id, root, ...more);
    count(root.current);
  };
  page[NAME] = hook;
}

/** How often React called each component since this was asked last, by name. */
export function rendersSinceThen(): ReadonlyMap<string, number> {
  const since = new Map(counts);
  counts.clear();
  return since;
}
