import { Loader, Skeleton } from '@mantine/core';

/** Shown until the session is known. */
export const Splash = () => (
  <main className="splash" aria-busy="true">
    <Loader aria-label="Loading" />
  </main>
);

/** Placeholder in the shape of a page. */
export const PageSkeleton = () => (
  <div className="page" aria-busy="true" role="status" aria-label="Loading">
    <Skeleton height={30} width={220} />
    <Skeleton height={90} />
    <Skeleton height={280} />
  </div>
);
