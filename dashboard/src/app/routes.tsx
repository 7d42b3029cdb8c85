import { Component, lazy, type ReactNode, Suspense } from "react";
import { Redirect, Route, Switch, useLocation } from "wouter";
import { Button } from "~/ui/button";
import { EmptyState } from "~/ui/empty-state";
import { Page } from "~/ui/page";

const Live = lazy(() => import("~/views/trace/live-view"));
const Tasks = lazy(() => import("~/views/calls/tasks-view"));
const Calls = lazy(() => import("~/views/calls/calls-view"));
const Sessions = lazy(() => import("~/views/clients/session-list"));
const Report = lazy(() => import("~/views/clients/report-view"));
const Hosts = lazy(() => import("~/views/server/hosts-view"));
const Timeline = lazy(() => import("~/views/timeline/view"));
const LadderView = lazy(() => import("~/views/trace/ladder-view"));
const Server = lazy(() => import("~/views/server/server-view"));
const Gateway = lazy(() => import("~/views/gateway/gateway-view"));
const ExportView = lazy(() => import("~/views/trace/saving"));
const Help = lazy(() => import("~/views/help/help-view"));

/** Which view an address shows. Views read what is selected with `useParams` and their filters with `useUrlState`. */
export function Routes() {
  const [location] = useLocation();
  return (
    <ErrorBoundary key={location.split("/")[1]}>
      <Suspense fallback={null}>
        <Switch>
          <Route path="/">
            <Redirect to="/live" replace />
          </Route>
          <Route path="/live" component={Live} />
          <Route path="/tasks/:id?" component={Tasks} />
          <Route path="/calls/:id?" component={Calls} />
          <Route path="/sessions/:id?" component={Sessions} />
          <Route path="/report/:client?" component={Report} />
          <Route path="/hosts/:id?" component={Hosts} />
          <Route path="/timeline" component={Timeline} />
          <Route path="/gateway" component={Gateway} />
          <Route path="/ladder" component={LadderView} />
          <Route path="/server" component={Server} />
          <Route path="/export" component={ExportView} />
          <Route path="/help/:tool?" component={Help} />
          <Route>
            <Page title="There is no such view">
              <EmptyState title="Choose one above" />
            </Page>
          </Route>
        </Switch>
      </Suspense>
    </ErrorBoundary>
  );
}

interface Props {
  children: ReactNode;
}

/** A view that fails leaves the header and the other views usable. Give it a `key` that changes with the view. */
class ErrorBoundary extends Component<Props, { error: unknown }> {
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
