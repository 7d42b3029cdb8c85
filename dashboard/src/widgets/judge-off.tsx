/** What stands where verdicts would while the server does not judge, and how to change that. */
export function JudgeOff() {
  return (
    <p>
      Judging is off: this server was started with <code>--no-judge</code>, so no rule was checked.
    </p>
  );
}
