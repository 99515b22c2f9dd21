import { readFileSync } from 'node:fs';
import { type ParentCalls, serveJobs } from '../../../platform/limited-process/child.ts';
import type { PythonAnswer, PythonJob } from './python-job.ts';
import { openSandbox } from './sandbox.ts';
import { refuseCode, seal } from './seal.ts';

let parent: ParentCalls | null = null;
const host = (call: string): string => parent?.askNow('python', call) as string;

let run: ((call: string) => string) | null = null;

async function* answers(job: PythonJob, calls: ParentCalls): AsyncGenerator<PythonAnswer> {
  parent = calls;
  if ('load' in job) {
    const { files, config, snapshot } = job.load;
    refuseCode();
    run = await openSandbox(snapshot === null ? null : new Uint8Array(readFileSync(snapshot)), host);
    seal();
    yield run(JSON.stringify({ files, config }));
  } else if (run) yield run(job.run);
}

serveJobs(answers);
