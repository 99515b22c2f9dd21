import { z } from 'zod';
import { createDocument, type oas31 } from 'zod-openapi';
import { outputSchema } from '../../../api/trusted-output.ts';
import { appRouter, type restRouter } from '../../../router.ts';
import type { openApiDocument } from '../../openapi.ts';
import type { ServedProcedure } from '../../rest.ts';

export type ApiDocument = ReturnType<typeof openApiDocument>;

/** An operation as the reference shows it. */
export interface ReferenceOperation {
  /** Of its heading, and of links to it. */
  id: string;
  /** The name in the typed client; null for what REST alone serves. */
  procedure: string | null;
  type: 'query' | 'mutation' | 'subscription';
  /** Null for what tRPC alone serves. */
  endpoint: ServedProcedure['endpoint'] | null;
  told: oas31.OperationObject;
}

export interface ReferenceGroup {
  /** The last part of its address. */
  slug: string;
  title: string;
  summary: string;
  operations: ReferenceOperation[];
}

type RouterName = keyof typeof appRouter._def.record | keyof typeof restRouter._def.record;

/** In the order of the menu. */
const TITLES: Record<RouterName, [title: string, summary: string]> = {
  connections: [
    'Connections',
    'Pipelines from a source to a destination, their streams, schedules and schema changes.',
  ],
  runs: ['Runs', 'Plain and custom runs of connections, their streams, logs and rejected rows.'],
  account_connectors: ['Sources and destinations', 'Connectors with the settings of the account.'],
  connectors: ['Connectors', 'Kinds of sources and destinations with their parameters.'],
  custom_connectors: ['Added connectors', 'Connectors that the account has added from Airbyte manifests.'],
  templates: ['Pipeline templates', 'Connectors, modes and schedules of common pipelines to start from.'],
  automation: ['Automation', 'Events, the triggers that watch them, and the cases that triggers open.'],
  verifications: ['Verifications', 'Proof that a table at the destination equals its stream at the source.'],
  cut_over: ['Cut-over', 'Move an application from the source to the destination.'],
  network_logs: ['Network logs', 'Every request of the connectors of a run, as gzipped JSON Lines.'],
  saved_views: ['Saved views', 'Filters of the lists under a name, for a user or the account.'],
  overview: ['Activity', 'What the account did lately.'],
  users: ['Users and API keys', 'Users of the account, their keys and sessions, and the calling user.'],
  roles: ['Roles and permissions', 'Roles grant permissions to users.'],
  billing: ['Billing', 'Plans, limits and usage.'],
  audit: ['Audit log', 'Who changed what, from where, with the values before and after.'],
};

/** Every procedure of the service by router: those with an endpoint, and those that tRPC alone serves. */
export function groupsOf(document: ApiDocument, served: readonly ServedProcedure[]): ReferenceGroup[] {
  const typed = appRouter._def.procedures as Record<string, unknown>;
  const all: [router: string, operation: ReferenceOperation][] = served.map(({ name, procedure, endpoint }) => {
    const told = (document.paths as oas31.PathsObject)[endpoint.path]![
      endpoint.method.toLowerCase() as 'get'
    ] as oas31.OperationObject;
    const type = procedure._def.type as ReferenceOperation['type'];
    // Two routers may share a name that only one of them serves over tRPC.
    const isTyped = typed[name] === procedure;
    return [name.split('.')[0]!, { id: told.operationId!, procedure: isTyped ? name : null, type, endpoint, told }];
  });
  for (const operation of rpcOperations(served)) all.push([operation.procedure!.split('.')[0]!, operation]);
  return Object.entries(TITLES).map(([router, [title, summary]]) => ({
    slug: router.replaceAll('_', '-'),
    title,
    summary,
    operations: all.filter(([own]) => own === router).map(([, operation]) => operation),
  }));
}

/** Procedures without an endpoint, as operations whose schemas refer to the components of the document. */
function rpcOperations(served: readonly ServedProcedure[]): ReferenceOperation[] {
  const endpoints = new Set<unknown>(served.map(({ procedure }) => procedure));
  const all = appRouter._def.procedures as unknown as Record<string, ServedProcedure['procedure']>;
  return Object.entries(all).flatMap(([name, procedure]) => {
    const { type, meta, output } = procedure._def;
    if (endpoints.has(procedure) || !meta?.rpc) return [];
    const { summary, description, input, yields } = meta.rpc;
    const schema = yields ?? outputSchema(output);
    const isEmpty = schema instanceof z.ZodVoid;
    const { paths } = createDocument({
      openapi: '3.1.0',
      info: { title: '', version: '' },
      paths: {
        '/': {
          post: {
            operationId: name.replaceAll('.', '_'),
            summary,
            description,
            requestBody: { required: true, content: { 'application/json': { schema: input } } },
            responses: {
              '200': { description: 'Successful', ...(!isEmpty && { content: { 'application/json': { schema } } }) },
            },
          },
        },
      },
    });
    const told = paths!['/']!.post!;
    return [{ id: told.operationId!, procedure: name, type: type as 'query', endpoint: null, told }];
  });
}
