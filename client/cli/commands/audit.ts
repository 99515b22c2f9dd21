import { buildCommand, buildRouteMap } from '@stricli/core';
import type { AuditListing } from '../actions/audit.ts';
import type { Cli } from '../context.ts';
import type { Shown } from '../output.ts';
import { countFlag, help, shown, shownAliases, textFlag, withCli } from './parameters.ts';

const actions = () => import('../actions/audit.ts');

export const audit = buildRouteMap({
  routes: {
    list: buildCommand<Shown & AuditListing, [], Cli>({
      loader: async () => withCli((await actions()).listAudit),
      parameters: {
        flags: {
          ...shown,
          action: textFlag('Procedure, such as connections.update or connections.*', 'action'),
          resource: textFlag('Id of a connection, user, key or other resource', 'id'),
          kind: textFlag('call, change, sign_in, sign_out, refusal, download or secret_use', 'kind'),
          from: textFlag('Start date or time', 'time'),
          to: textFlag('End date or time', 'time'),
          limit: countFlag('Maximum number of entries; default 100', 'entries'),
        },
        aliases: shownAliases,
      },
      docs: help('List the entries of the audit log, newest first', {
        examples: ['audit list --kind refusal', "audit list --action 'connections.*' --from 2026-11-01 -o csv"],
      }),
    }),
    verify: buildCommand<Shown & { anchor?: string }, [], Cli>({
      loader: async () => withCli((await actions()).verifyAudit),
      parameters: {
        flags: { ...shown, anchor: textFlag('SEAL:HASH of an earlier verification or of a log line', 'anchor') },
        aliases: shownAliases,
      },
      docs: help("Check that the account's audit log is complete and unchanged", {
        about: 'The exit code is the result: 0 intact, 1 changed. Keep the anchor that it prints in another place.',
        examples: ['audit verify', 'audit verify --json'],
      }),
    }),
  },
  docs: { brief: 'Read and verify the audit log' },
});
