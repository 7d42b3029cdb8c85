import { CodeBlock } from "~/ui/code-block";

/** What stands where verdicts would: nobody judges, and how that is changed. */
export function JudgeOff() {
  return (
    <>
      <p>
        Nobody judges the clients of this server, as it was started without <code>--judge</code>. That no finding is shown says nothing about
        them. Start the server with it, and connect the client again:
      </p>
      <CodeBlock title="Shell" code="mcp-probe serve --judge" wrap />
    </>
  );
}
