import { Component, type ReactNode } from "react";
import { Button } from "~/ui/button";
import { EmptyState } from "~/ui/empty-state";

interface Props {
  children: ReactNode;
}

/** A view that fails leaves the header and the other views usable. Give it a `key` that changes with the view. */
export class ErrorBoundary extends Component<Props, { error: unknown }> {
  override state = { error: undefined as unknown };

  static getDerivedStateFromError(error: unknown) {
    return { error: error ?? new Error("unknown") };
  }

  override render(): ReactNode {
    if (this.state.error === undefined) return this.props.children;
    return (
      <EmptyState title="This view failed">
        <p>{String(this.state.error)}</p>
        <Button onClick={() => location.reload()}>Load the page again</Button>
      </EmptyState>
    );
  }
}
