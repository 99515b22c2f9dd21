import { Button } from '@mantine/core';
import { usePermission } from '../../current-user.ts';
import { Icon } from '../../components/icon.tsx';
import { type Tested, useTest } from './use-test.ts';

interface TestButtonProps {
  connector: Tested;
  /** The destination schema of a connection; empty: the default one. */
  schema?: string;
  size?: 'xs' | 'sm';
}

/** Tests a source or destination as it is stored. */
export function TestButton({ connector, schema, size = 'sm' }: TestButtonProps) {
  const mayUpdate = usePermission(`${connector.connector_type}s.update`);
  const test = useTest(connector, schema);
  return (
    <Button
      variant="default"
      size={size}
      leftSection={<Icon name="refresh" size={size === 'xs' ? 14 : 16} />}
      disabled={!mayUpdate}
      loading={test.isPending}
      onClick={test.run}
    >
      Test
    </Button>
  );
}
