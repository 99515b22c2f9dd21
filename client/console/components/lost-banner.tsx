import { Loader } from '@mantine/core';
import { lost } from '../service-reachability.ts';

/** Stands above the page as long as the service cannot be reached. */
export function LostBanner() {
  const isLost = lost.use();
  return (
    <div role="status">
      {isLost && (
        <div className="lost-banner">
          <Loader size="xs" color="currentColor" aria-hidden="true" />
          <span>
            <b>The service cannot be reached.</b> What you see may be out of date; nothing that you typed is lost.
            Trying again each second.
          </span>
        </div>
      )}
    </div>
  );
}
