import { and, eq } from 'drizzle-orm';
import { streamRuns } from '../../db/schema/index.ts';
import type { KeptJob, KeptJobs } from '../connectors/contract/connector.ts';
import type { Deps } from '../deps.ts';
import type { Claim } from '../runs/claim-stream.ts';

const isSame = (a: KeptJob, b: KeptJob) => a.stream === b.stream && a.id === b.id;

/** The jobs of a stream run, stored with it while this worker holds its claim. */
export function keptJobsOf(deps: Deps, { stream_run }: Pick<Claim, 'stream_run'>): KeptJobs {
  let jobs: KeptJob[] = stream_run.source_jobs;
  let earlier = jobs;
  let last = Promise.resolve();
  const write = async () => {
    try {
      await deps.db
        .update(streamRuns)
        .set({ source_jobs: jobs })
        .where(and(eq(streamRuns.id, stream_run.id), eq(streamRuns.fence, stream_run.fence)));
    } catch (error) {
      // The job itself is sound: only a crash would leave it behind.
      deps.log.warn({ err: error, stream_run_id: stream_run.id }, 'the jobs of a stream were not stored');
    }
  };
  // In order, so that the last list is the one that stays.
  const store = (changed: KeptJob[]) => {
    jobs = changed;
    last = last.then(write);
    return last;
  };
  return {
    takeEarlier: () => {
      const taken = earlier;
      earlier = [];
      return taken;
    },
    keep: (job) => store([...jobs, job]),
    release: async (job) => {
      if (jobs.some((one) => isSame(one, job))) await store(jobs.filter((one) => !isSame(one, job)));
    },
  };
}
