import { z } from 'zod';
import { rest } from '../../api/endpoint.ts';
import { read, write } from '../../api/procedure.ts';
import { getCase, listCases, updateCase } from './cases.ts';
import { CaseQuery, CaseSchema, CaseStatus, ChatChannelSchema } from './cases-schema.ts';
import { listChatChannels } from './chat-channels.ts';

/** Part of the automation router. */
export const caseProcedures = {
  listCases: read
    .concat(
      rest('GET', '/automation/cases', {
        operation_id: 'list_cases',
        summary: 'List cases, newest first',
        description: 'Without events, timeline and deliveries. Without `limit`, all of them.',
        query: CaseQuery,
      }),
    )
    .output(z.array(CaseSchema))
    .query(({ ctx, input }) => listCases(ctx, input)),
  getCase: read
    .concat(
      rest('GET', '/automation/cases/{case_id}', {
        operation_id: 'get_case',
        summary: 'Get a case with its events, timeline and deliveries',
        description: 'The newest 20 events and 100 deliveries.',
      }),
    )
    .output(CaseSchema)
    .query(({ ctx, input }) => getCase(ctx, input)),
  updateCase: write('cases.update')
    .concat(
      rest('POST', '/automation/cases/{case_id}', {
        operation_id: 'update_case_status',
        summary: 'Acknowledge, suppress, resolve or reopen a case',
        description:
          'The current status changes nothing. A resolved case can be reopened unless a newer one of the same group is open.',
        query: z.object({ status: CaseStatus }),
        errors: [400],
      }),
    )
    .output(CaseSchema)
    .mutation(({ ctx, input }) => updateCase(ctx, input)),
  listChatChannels: read
    .concat(
      rest('GET', '/automation/chat_channels/{account_connector_id}', {
        operation_id: 'list_chat_channels',
        summary: 'List the channels of a chat connector by name, requested live',
        description: 'Cached for a minute.',
        errors: [400],
      }),
    )
    .output(z.array(ChatChannelSchema))
    .query(({ ctx, input }) => listChatChannels(ctx, input)),
};
