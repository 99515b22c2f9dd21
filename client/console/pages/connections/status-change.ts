import { client, type RouterInputs } from '../../api.ts';
import type { Summary } from '../../answers.ts';

type Update = RouterInputs['connections']['update'];

/** Notices of pausing and resuming a connection, and how to undo them: only the service disables or locks one. */
export const statusChange = ({ name }: Pick<Summary, 'name'>) => ({
  done: (_updated: unknown, input: Update) => `${name} ${input.status === 'paused' ? 'paused' : 'resumed'}`,
  failed: 'Connection not updated',
  undo: {
    input: async ({ connection_id }: Update): Promise<Update | null> => {
      const { revision, status } = await client.connections.get.query({ connection_id });
      return status === 'active' || status === 'paused' ? { connection_id, revision, status } : null;
    },
  },
});
