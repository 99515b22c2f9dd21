import { Component, type ReactNode } from 'react';
import { Failure } from './failure.tsx';

/** A page that cannot be drawn, or not loaded after the service was replaced, does not take the console with it. */
export class ErrorBoundary extends Component<{ children: ReactNode }, { error: unknown }> {
  override state: { error: unknown } = { error: null };

  static getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override render() {
    if (this.state.error === null) return this.props.children;
    return (
      <Failure title="This page cannot be shown" error={this.state.error} retry={() => window.location.reload()} />
    );
  }
}
