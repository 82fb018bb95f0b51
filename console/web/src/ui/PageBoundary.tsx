import { Component, useState, type ReactNode } from "react";
import { loadConfig } from "../api/session";
import { NotLoadedError } from "./load";
import { useTitle } from "./title";
import { ErrorNote } from "./ErrorNote";

/** Confines a rendering error to one page. */
export class PageBoundary extends Component<{ children: ReactNode }, { error?: Error }> {
  override state: { error?: Error } = {};

  static getDerivedStateFromError(error: Error): { error: Error } {
    return { error };
  }

  override render(): ReactNode {
    if (!this.state.error) return this.props.children;
    if (this.state.error instanceof NotLoadedError) return <NotLoaded />;
    return (
      <>
        <h1>This page failed</h1>
        <ErrorNote error={this.state.error} onRetry={() => this.setState({})} />
      </>
    );
  }
}

// Browsers do not retry a failed module import, so the page has to reload. It reloads only after the host responds.
function NotLoaded(): ReactNode {
  const [error, setError] = useState<unknown>();
  useTitle("This page could not be loaded");
  const again = (): void => {
    loadConfig().then(() => location.reload(), setError);
  };
  return (
    <>
      <h1>This page could not be loaded</h1>
      {error === undefined ? (
        <div className="note ask" role="alert">
          <p>The host is unreachable, or was updated since you opened the console. Pages you have already opened still work.</p>
          <button type="button" onClick={again}>
            Reload
          </button>
        </div>
      ) : (
        <ErrorNote error={error} onRetry={again} />
      )}
    </>
  );
}
