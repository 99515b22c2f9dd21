import type { RouterOutputs } from '../../api.ts';
import { CopyBlock } from '../../components/copy-block.tsx';
import { RelativeTime } from '../../components/relative-time.tsx';
import { Section } from '../../components/page.tsx';
import { Status } from '../../components/status.tsx';

/** What an owner of the database runs to grant what a check misses. */
export const Statements = ({ statements }: { statements: readonly string[] }) => (
  <CopyBlock label="Statements for the owner of the database" text={statements.map((one) => `${one};`).join('\n')} />
);

type Tested = Pick<RouterOutputs['account_connectors']['get'], 'last_test' | 'last_tested_at'>;

/** The checks of the last test, with their results. */
export const Checks = ({ connector: { last_test, last_tested_at } }: { connector: Tested }) => (
  <Section title="Last test" lead={<RelativeTime at={last_tested_at} never="Never tested" />}>
    {last_test && (
      <ul className="lines">
        {last_test.checks.map(({ title, status, message, statements }) => (
          <li key={title}>
            <span className="grow">
              <b>{title}</b>
              {message && <span className="dimmed"> {message}</span>}
            </span>
            <Status value={status} />
            {statements && <Statements statements={statements} />}
          </li>
        ))}
      </ul>
    )}
  </Section>
);
