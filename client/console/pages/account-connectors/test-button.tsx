import { Button } from '@mantine/core';
import { usePermission } from '../../current-user.ts';
import { Icon } from '../../components/icon.tsx';
import { type Tested, useTest } from './use-test.ts';

/** Tests a source or destination as it is stored. */
export function TestButton({ connector, size = 'sm' }: { connector: Tested; size?: 'xs' | 'sm' }) {
  const mayUpdate = usePermission(`${connector.connector_type}s.update`);
  const test = useTest(connector);
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
