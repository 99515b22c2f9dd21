import type { Cli } from '../context.ts';
import { colouredStatus, number } from '../style.ts';
import { showList, showThing, table } from '../table.ts';

export async function usage(cli: Cli, flags: { json: boolean; range?: string; connections: boolean }): Promise<void> {
  const api = await cli.api();
  // The service validates the range.
  const date_range = flags.range as 'last_30_days' | undefined;
  const total = await api.billing.aggregatedUsage.query({ date_range });
  if (flags.connections) {
    const { start_date, end_date } = total;
    return showList(cli, await api.billing.connectionUsage.query({ start_date, end_date }), {
      json: flags.json,
      empty: 'No usage in this period',
      columns: {
        connection: ({ connection_name, connection_deleted }) =>
          connection_deleted ? `${connection_name} (deleted)` : connection_name,
        runs: ({ runs }) => number(runs),
        rows: ({ rows_total }) => number(rows_total),
        free: ({ rows_free }) => number(rows_free),
        credits: ({ credits_used }) => number(credits_used),
        share: ({ percent_of_total }) => `${percent_of_total} %`,
      },
    });
  }
  const { totals } = total;
  showThing(cli, total, {
    json: flags.json,
    lines: {
      period: `${total.start_date} to ${total.end_date}`,
      rows: `${number(totals.rows_total)}, ${number(totals.rows_free)} of them free`,
      credits: `${number(totals.credits_used)} of ${totals.credits_included === null ? 'unlimited' : number(totals.credits_included)}`,
      runs: `${number(totals.runs)}, ${number(totals.failed_runs)} failed`,
    },
  });
  if (flags.json) return;
  cli.print(
    table(cli, total.limits, {
      columns: {
        limit: ({ key }) => key,
        used: ({ used }) => number(used),
        of: ({ limit }) => (limit === null ? 'unlimited' : number(limit)),
        status: ({ status }) => colouredStatus(cli.style, status),
      },
    }),
  );
}
