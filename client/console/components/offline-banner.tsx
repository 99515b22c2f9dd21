import { Loader } from '@mantine/core';
import { serviceUnreachable } from '../service-reachability.ts';

/** Shown above the page while the service cannot be reached. */
export function OfflineBanner() {
  const isUnreachable = serviceUnreachable.use();
  return (
    <div role="status">
      {isUnreachable && (
        <div className="offline-banner">
          <Loader size="xs" color="currentColor" aria-hidden="true" />
          <span>
            <b>Can’t reach the service.</b> Retrying every second. This page may be out of date, but your unsaved input
            is kept.
          </span>
        </div>
      )}
    </div>
  );
}
