/** A sentence in which code stands between backticks. */
export function Prose({ text }: { text: string }) {
  // every second part was between two of them
  return text.split("`").map((part, index) => {
    // the parts of a constant text never move
    // oxlint-disable-next-line react/no-array-index-key
    return index % 2 === 0 ? part : <code key={index}>{part}</code>;
  });
}
