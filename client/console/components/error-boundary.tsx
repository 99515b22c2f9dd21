import { Component, type ReactNode } from 'react';
import { Failure } from './failure.tsx';

/** Contains a page that fails to render, or whose chunk is gone after an upgrade of the service. */
export class ErrorBoundary extends Component<{ children: ReactNode }, { error: unknown }> {
  override state: { error: unknown } = { error: null };

  static getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override render() {
    if (this.state.error === null) return this.props.children;
    return <Failure title="This page failed to load" error={this.state.error} retry={() => window.location.reload()} />;
  }
}
