import type { ReactNode } from 'react';
import { Failure } from './failure.tsx';
import { PageSkeleton } from './splash.tsx';

interface QueryViewProps<T> {
  query: { data: T | undefined; error: unknown; refetch: () => unknown };
  children: (data: T) => ReactNode;
  /** Shown until the data arrives. */
  skeleton?: ReactNode;
}

/** Renders the data of a query, its skeleton or its failure. Data stays visible while a later refetch fails. */
export function QueryView<T>({ query, children, skeleton = <PageSkeleton /> }: QueryViewProps<T>) {
  if (query.data !== undefined) return children(query.data);
  if (query.error) return <Failure error={query.error} retry={() => void query.refetch()} />;
  return skeleton;
}
