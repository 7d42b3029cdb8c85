import { formatDuration } from "~/ui/time-format";
import styles from "./gateway.module.css";
import { type Seen, type Trace, WAY_NAMES, type Way } from "./pairs";

interface StripProps {
  traces: readonly (readonly [way: Way, trace: Trace | undefined])[];
  /** The end of the scale, in milliseconds. */
  last: number;
}

const ENDS = [
  ["probe", "sent by the probe"],
  ["client", "arrived at the client"],
] as const;

/** When the messages of both ways left the probe and came to the client, on one scale: what is late or held back is seen at once. */
export function Strip({ traces, last }: StripProps) {
  const drawn = traces.filter((each): each is readonly [Way, Trace] => each[1] !== undefined);
  return (
    <div className={styles["strip"]}>
      {drawn.map(([way, { seen }]) => (
        <div key={way} role="group" aria-label={WAY_NAMES[way]}>
          <h3>{WAY_NAMES[way]}</h3>
          {ENDS.map(([end, name]) => (
            <Lane key={end} name={name} at={seen.filter((each) => each.end === end && each.isMessage)} last={last} />
          ))}
        </div>
      ))}
      <p className={styles["scale"]}>
        <span>0 ms</span>
        <span>{formatDuration(last)}</span>
      </p>
    </div>
  );
}

function Lane({ name, at, last }: { name: string; at: readonly Seen[]; last: number }) {
  const times = at.length === 0 ? "none" : `${at.length}, from ${formatDuration(at[0]?.offset ?? 0)} to ${formatDuration(at.at(-1)?.offset ?? 0)}`;
  return (
    <div className={styles["lane"]}>
      <span>{name}</span>
      <svg role="img" aria-label={`${name}: ${times}`}>
        <line x1="0" x2="100%" y1="50%" y2="50%" />
        {at.map(({ key, offset, what }) => (
          <circle key={key} cx={`${1 + (98 * Math.max(0, offset)) / last}%`} cy="50%" r="4">
            <title>{`${what}, ${formatDuration(offset)}`}</title>
          </circle>
        ))}
      </svg>
    </div>
  );
}
