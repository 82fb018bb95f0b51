import { Component, type ReactNode } from "react";
import { ErrorNote } from "./ErrorNote";

/** Keeps a page that fails from taking the others with it. */
export class PageBoundary extends Component<{ children: ReactNode }, { error?: Error }> {
  override state: { error?: Error } = {};

  static getDerivedStateFromError(error: Error): { error: Error } {
    return { error };
  }

  override render(): ReactNode {
    if (!this.state.error) return this.props.children;
    return (
      <>
        <h1>This page failed</h1>
        <ErrorNote error={this.state.error} onRetry={() => this.setState({})} />
      </>
    );
  }
}
