import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Failure } from './failure.tsx';
import { PageSkeleton } from './splash.tsx';

interface LoadedProps<T> {
  query: UseQueryResult<T>;
  children: (data: T) => ReactNode;
  /** Stands there until the data does. */
  skeleton?: ReactNode;
}

/** The data of a query, or what is in its way. What was there stays in sight while a later question fails. */
export function Loaded<T>({ query, children, skeleton = <PageSkeleton /> }: LoadedProps<T>) {
  if (query.data !== undefined) return children(query.data);
  if (query.error) return <Failure error={query.error} retry={() => void query.refetch()} />;
  return skeleton;
}
