import type { OperatorCommand } from './operator-command.ts';

/** Commands for operators, by name: `bun server/main.ts <name>`. Each loads only its own code. */
export const OPERATOR_COMMANDS: Record<string, () => Promise<OperatorCommand>> = {
  backup: async () => (await import('./backup.ts')).backupCommand,
  restore: async () => (await import('./backup.ts')).restoreCommand,
  resume: async () => (await import('./backup.ts')).resumeCommand,
  migrate: async () => (await import('./migrate.ts')).migrateCommand,
  grant: async () => (await import('./grant.ts')).grantCommand,
  'rotate-key': async () => (await import('./rotate-key.ts')).rotateKeyCommand,
  'verify-audit': async () => (await import('./verify-audit.ts')).verifyAuditCommand,
  account: async () => (await import('./account.ts')).accountCommand,
  doctor: async () => (await import('./doctor.ts')).doctorCommand,
};
