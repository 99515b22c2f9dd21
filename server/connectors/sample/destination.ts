import { z } from 'zod';
import { type ConnectorContext, defineDestination, type Writer, type WriteTarget } from '../contract/connector.ts';
import { FileDestinationConfig } from '../kits/files/settings/files.ts';
import { openTableWriter } from '../kits/files/table-writer.ts';
import { beginAttempt, checkSample, delayBatch, faultSettings, misbehave } from './faults.ts';

export const SampleDestinationConfig = z.object({
  folder: z
    .string()
    .regex(/^[a-z0-9_-]{1,64}$/)
    .default('sample')
    .meta({
      label: 'Folder',
      directs_secrets: false,
      description: 'Each table becomes a subfolder of JSON Lines files',
    }),
  fault_at: z
    .enum(['open', 'write', 'checkpoint', 'after_checkpoint', 'finish', 'after_finish'])
    .default('write')
    .meta({
      label: 'Fault at',
      directs_secrets: false,
      description: 'The fault occurs before this step, or right after its commit',
      group: 'advanced',
    }),
  fault_after_rows: z.int().min(0).default(0).meta({
    label: 'Rows before the fault',
    directs_secrets: false,
    description: 'The fault occurs only after the attempt has written this many rows',
    group: 'advanced',
  }),
  ...faultSettings,
});
export type SampleDestinationConfig = z.infer<typeof SampleDestinationConfig>;
type Context = ConnectorContext<SampleDestinationConfig>;

export const sampleDestination = defineDestination<SampleDestinationConfig>({
  type: 'destination',
  name: 'sample',
  display_name: 'Sample',
  description: 'Writes JSON Lines files and fails on request, for tests',
  category: 'file',
  version: '1.0.0',
  release_stage: 'alpha',
  auth_methods: ['none'],
  hidden: true,
  supported_destination_sync_modes: ['append', 'overwrite'],
  config: SampleDestinationConfig,
  check: checkSample,
  open,
});

async function open(ctx: Context, target: WriteTarget): Promise<Writer> {
  const { config } = ctx;
  const faulty = await beginAttempt(ctx, `write_${target.table}`);
  let rows = 0;
  const step = async (name: SampleDestinationConfig['fault_at']) => {
    if (faulty && config.fault_at === name && rows >= config.fault_after_rows) await misbehave(ctx);
  };
  await step('open');
  const files = FileDestinationConfig.parse({ path: config.folder, format: 'jsonl' });
  const writer = await openTableWriter({ ...ctx, config: files }, target);
  return {
    committed: writer.committed,
    held: writer.held,
    async write(batch) {
      await step('write');
      await delayBatch(ctx);
      await writer.write(batch);
      rows += batch.rows.length;
    },
    async checkpoint(state) {
      await step('checkpoint');
      const counts = await writer.checkpoint(state);
      await step('after_checkpoint');
      return counts;
    },
    async finish(state) {
      await step('finish');
      const counts = await writer.finish(state);
      await step('after_finish');
      return counts;
    },
    abort: () => writer.abort(),
  };
}
