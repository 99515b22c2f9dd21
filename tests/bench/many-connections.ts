import type postgres from 'postgres';
import type { Service } from './service.ts';

const SCHEDULE = { type: 'cron', cron_expression: '*/10 * * * *', timezone: 'UTC' };

/** Connections that read ten rows of the demo source into a file, every ten minutes, from next year on. */
export async function createMany(service: Service, control: postgres.Sql, count: number): Promise<void> {
  const side = async (connector_type: string, connector_name: string, parameters: object) => {
    const body = { name: connector_name, connector_type, connector_name, parameters };
    return (await service.call<{ id: string }>('POST', '/account_connectors', body)).id;
  };
  const { id } = await service.call<{ id: string }>('POST', '/connections', {
    name: 'many',
    source_id: await side('source', 'demo', { rows: 10 }),
    destination_id: await side('destination', 'file', { path: 'out', format: 'csv' }),
    schedule: SCHEDULE,
    streams: [{ name: 'orders', sync_mode: 'full_refresh', destination_sync_mode: 'overwrite' }],
  });
  await copyConnection(control, id, count - 1);
}

/** By SQL: as many requests would take minutes. */
export async function copyConnection(control: postgres.Sql, connection_id: string, copies: number): Promise<void> {
  await control.begin(async (sql) => {
    // What a copy changes is not audited. No trigger fires: `written_table` is set below.
    await sql`set local session_replication_role = replica`;
    await sql`update connections set next_run_at = now() + interval '1 year' where id = ${connection_id}`;
    await sql`
      create temporary table copies on commit drop as
      select gen_random_uuid() as id, n from generate_series(1, ${copies}::int) n`;
    await sql`
      insert into connections select (jsonb_populate_record(c, jsonb_build_object(
        'id', copies.id, 'name', c.name || ' ' || n, 'table_prefix', 'c' || n || '_'))).*
      from connections c, copies where c.id = ${connection_id}`;
    await sql`
      insert into connection_streams select (jsonb_populate_record(s, jsonb_build_object(
        'id', gen_random_uuid(), 'connection_id', copies.id,
        'written_table', lower('c' || n || '_' || coalesce(s.destination_table, s.name))))).*
      from connection_streams s, copies where s.connection_id = ${connection_id} and s.selected`;
  });
  await control`analyze`;
}
