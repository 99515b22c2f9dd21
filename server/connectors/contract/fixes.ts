import type { ConnectorError } from './errors.ts';

/** What to do about an error of a test, by its code. Messages say what failed, and not always what helps. */
const BY_CODE: Record<string, string> = {
  host_not_found: 'Check the host name. The service must be able to resolve it.',
  connection_refused:
    'Check host and port, and that the server accepts connections from other machines. A firewall must let the service in.',
  host_unreachable: 'Check the host. If it is in a private network, connect through an SSH tunnel.',
  connection_timeout: 'Check host and port. A firewall that drops packets is the usual cause; allow the service there.',
  certificate_invalid:
    'Paste the certificate of the authority into the parameter for it, or select an SSL mode that does not check the certificate.',
  tls_not_supported: 'Turn on TLS at the server, or select an SSL mode without it.',
  address_not_allowed: 'Use a public address, or ask an administrator to allow this one with EGRESS_ALLOW.',
  data_connection_failed:
    'Open the passive ports of the FTP server in its firewall, and check the address that it names for data.',
  permission_denied: 'Grant the user the missing permission. The rights that are needed are shown beside the form.',
  database_not_found: 'Check the name of the database; names are case-sensitive on many servers.',
  bucket_not_found: 'Check bucket and region, and that the key belongs to the account that owns the bucket.',
  access_denied: 'Give the key the permission to list, read and, for a destination, write and delete objects.',
  file_forbidden:
    'Give the user the permission to list and read and, for a destination, to create, rename and delete in this folder.',
  path_outside_root: 'Use a path within the folder for files of the account.',
  ssh_login_refused: 'Add the public key to ~/.ssh/authorized_keys of that user on the SSH server, on one line.',
  ssh_connection_lost: 'Check that the SSH server allows port forwarding (AllowTcpForwarding yes).',
  ssh_host_key_changed: 'If the server was replaced, accept its new host key. Otherwise do not connect.',
  replication_not_permitted: 'Give the user the right to replicate, then test again.',
  publication_missing: 'Create the publication at the source, or leave its name empty.',
};

const BY_TYPE: Partial<Record<ConnectorError['type'], string>> = {
  auth_error: 'Check the credentials and enter them again. They may have expired or been revoked.',
  rate_limited: 'Wait, then test again.',
  timeout: 'Test again. If it happens repeatedly, check the load of the server and the network between.',
};

/** What users can do about the error, in a sentence; absent if the message has to do. */
export const fixOf = ({ code, type }: Pick<ConnectorError, 'code' | 'type'>): { fix?: string } => {
  const fix = (Object.hasOwn(BY_CODE, code) ? BY_CODE[code] : undefined) ?? BY_TYPE[type];
  return fix === undefined ? {} : { fix };
};
