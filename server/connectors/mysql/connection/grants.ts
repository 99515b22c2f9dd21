import { identifier, literal } from './sql.ts';

type Login = { username?: string; database?: string };

/** Of any host: which one the server sees is not known. */
const quoted = ({ username = 'reader', database = 'shop' }: Login) => ({
  user: `${literal(username)}@'%'`,
  tables: `${identifier(database)}.*`,
});

export function rightsToRead(settings: Login & { replication?: string }): string {
  const { user, tables } = quoted(settings);
  const log =
    settings.replication === 'logical' ? `\nGRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO ${user};` : '';
  return `GRANT SELECT, SHOW VIEW, LOCK TABLES ON ${tables} TO ${user};\nGRANT PROCESS ON *.* TO ${user};${log}`;
}

export const rightsToWrite = (settings: Login): string => `${grantToWrite(settings)};`;

function grantToWrite(settings: Login): string {
  const { user, tables } = quoted(settings);
  const needed = 'SELECT, INSERT, UPDATE, DELETE, CREATE, CREATE TEMPORARY TABLES, ALTER, DROP, INDEX';
  return `GRANT ${needed} ON ${tables} TO ${user}`;
}

/** Statements that create a database in which the user can write. */
export const grantsToCreate = (settings: Login & { database: string }): string[] => [
  `CREATE DATABASE ${identifier(settings.database)} DEFAULT CHARACTER SET utf8mb4`,
  grantToWrite(settings),
];
