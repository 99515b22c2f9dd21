import type { RouterOutputs } from '../../api.ts';
import { CopyBlock } from '../../components/copy-block.tsx';
import { RelativeTime } from '../../components/relative-time.tsx';
import { Section } from '../../components/page.tsx';
import { Status } from '../../components/status.tsx';

type Tested = Pick<RouterOutputs['account_connectors']['get'], 'last_test' | 'last_tested_at'>;
type Check = NonNullable<Tested['last_test']>['checks'][number];

/** What helps against a failed check, and what an owner of the database runs to grant what is missing. */
export const Remedy = ({ check: { fix, statements } }: { check: Pick<Check, 'fix' | 'statements'> }) => (
  <>
    {fix && <span className="check-fix">{fix}</span>}
    {statements && (
      <CopyBlock
        label="Statements for the owner of the database"
        text={statements.map((one) => `${one};`).join('\n')}
      />
    )}
  </>
);

/** The checks of the last test, with their results. */
export const Checks = ({ connector: { last_test, last_tested_at } }: { connector: Tested }) => (
  <Section title="Last test" lead={<RelativeTime at={last_tested_at} never="Never tested" />}>
    {last_test && (
      <ul className="lines">
        {last_test.checks.map(({ title, status, message, ...remedy }) => (
          <li key={title}>
            <span className="grow">
              <b>{title}</b>
              {message && <span className="dimmed"> {message}</span>}
            </span>
            <Status value={status} />
            <Remedy check={remedy} />
          </li>
        ))}
      </ul>
    )}
  </Section>
);
