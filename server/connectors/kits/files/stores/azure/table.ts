import type { DestinationContext } from '../../settings/files.ts';
import type { CheckStep } from '../check-steps.ts';
import { keyPrefix, ObjectTable } from '../object-table.ts';
import type { ObjectWriter } from '../object-writer.ts';
import type { DestinationStore } from '../store.ts';
import { Container } from './container.ts';
import { blobsOf } from './files.ts';

export const azureDestinationStore: DestinationStore = {
  checkSteps: containerSteps,
  open: (ctx, target) => ObjectTable.open(azureObjects(new Container(ctx)), ctx, target),
};

/** A run lists, writes blobs in blocks and deletes. */
function containerSteps(ctx: DestinationContext): CheckStep[] {
  const container = new Container(ctx);
  const objects = azureObjects(container);
  const prefix = `${keyPrefix(ctx.config.path)}_pipeline_state/`;
  const key = `${prefix}.check-${crypto.randomUUID()}`;
  return [
    ['Container', 'Blobs can be listed', () => container.page(prefix, '')],
    ['Write', 'A blob can be written', () => objects.put(key, 'check')],
    ['Delete', 'A blob can be deleted', () => objects.remove(key)],
  ];
}

/** Uploads are uncommitted blocks, which the store deletes after a week if no list of blocks names them. */
function azureObjects(container: Container): ObjectWriter {
  const discard = async (answer: Promise<Response>) => {
    await (await answer).body?.cancel();
  };
  return {
    list: (prefix) => blobsOf(container, prefix),
    async get(key) {
      const answer = await container.send({ blob: key, accept: [404] });
      if (answer.status !== 404) return answer.text();
      await answer.body?.cancel();
      return null;
    },
    put: (key, text) =>
      discard(container.send({ method: 'PUT', blob: key, headers: { 'x-ms-blob-type': 'BlockBlob' }, body: text })),
    remove: (key) => discard(container.send({ method: 'DELETE', blob: key, accept: [404] })),
    async exists(key) {
      const { status } = await container.send({ method: 'HEAD', blob: key, accept: [404] });
      return status !== 404;
    },
    begin: async (key) => ({ key, id: crypto.randomUUID() }),
    async part({ key, id }, number, body) {
      // The store takes no empty blocks. A list without blocks is an empty blob.
      if (body.length === 0) return '';
      // Of the same length for all blocks of a blob.
      const blockid = Buffer.from(`${id}-${String(number).padStart(6, '0')}`).toString('base64');
      await discard(container.send({ method: 'PUT', blob: key, query: { comp: 'block', blockid }, body }));
      return blockid;
    },
    async complete({ key }, parts) {
      const blocks = parts.filter((id) => id !== '').map((id) => `<Latest>${id}</Latest>`);
      const body = `<?xml version="1.0" encoding="utf-8"?><BlockList>${blocks.join('')}</BlockList>`;
      const answer = await container.send({
        method: 'PUT',
        blob: key,
        query: { comp: 'blocklist' },
        body,
        accept_codes: ['InvalidBlockList'],
      });
      await answer.body?.cancel();
      return answer.ok;
    },
    abort: () => Promise.resolve(),
  };
}
