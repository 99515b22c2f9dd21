import { type ParentCalls, serveJobs } from '../../server/platform/limited-process/child.ts';

// A process that carries out its jobs, for limited-process.test.ts.
async function* work(job: { do: string; value?: unknown }, parent: ParentCalls): AsyncGenerator {
  switch (job.do) {
    case 'echo':
      yield job.value;
      yield process.pid;
      return;
    case 'ask':
      yield await parent.ask('double', job.value);
      return;
    case 'throw':
      throw new RangeError(String(job.value));
    case 'exit':
      process.exit(3);
    case 'spin':
      for (let turns = 0; ; turns += 1) if (process.pid < 0) yield turns;
    case 'grow':
      for (const kept: Uint8Array[] = []; ; ) {
        kept.push(new Uint8Array(8_000_000).fill(1));
        if (kept.length < 0) yield kept;
      }
    case 'wait':
      yield process.pid;
      await new Promise(() => {});
  }
}

serveJobs(work);
