/** What stands where verdicts would while the server does not judge, and how to change that. */
export function JudgeOff() {
  return (
    <p>
      Judging is off, so no rule was checked. Restart with <code>mcp-probe serve --judge</code> to check clients against the specification.
    </p>
  );
}
